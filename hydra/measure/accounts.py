"""What became of the messages of a step: of each subscriber, or of the group whose members share them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace

from hydra.measure import loss
from hydra.measure.group import group_fate, united
from hydra.model import LedgerCounts, PublisherReport, SubscriberReport


@dataclass(frozen=True, slots=True)
class Accounts:
    """What became of every subscriber's messages, by client: at most and at least received.

    They differ only where a publisher's unacknowledged ranges were joined, or where members of a group could not list
    what they received.

    Attributes:
        most, least: by client. A member of a group loses nothing: its account is what it received.
        group: the group's own account, at most and at least; None where everybody gets everything.
        together: the group's report.
        gone: whether members of the group have no report.
    """

    most: Mapping[int, loss.Fate]
    least: Mapping[int, loss.Fate]
    group: Mapping[loss.Doubt, loss.Fate] | None = None
    together: SubscriberReport | None = None
    gone: bool = False

    @property
    def exact(self) -> bool:
        """Whether there is nothing in doubt."""
        return self.most is self.least

    @property
    def truncated(self) -> bool:
        """Whether members of a group could not list what they received."""
        return self.together is not None and any(ledger.truncated for ledger in self.together.ledgers)

    def of(self, clients: Iterable[int], doubt: loss.Doubt = "most") -> loss.Fate:
        """The account of several; of any members of a group, the group's."""
        if self.group is not None:
            return self.group[doubt]
        fates = self.most if doubt == "most" else self.least
        return loss.total(fates[c] for c in clients)

    def of_reporting(self, clients: Iterable[int], doubt: loss.Doubt = "most") -> loss.Fate:
        """The same of subscribers that reported: what a group misses may be what those of it had that did not."""
        found = self.of(clients, doubt)
        if self.group is None or not self.gone:
            return found
        return replace(found, expected=found.expected - found.lost - found.unknown, lost=0, unknown=0)

    def received(self, clients: Iterable[int]) -> list[int]:
        """What each of them received; one without a report, by its last word."""
        return [self.most[c].received for c in clients]

    def ledgers(self, reports: Collection[SubscriberReport]) -> list[LedgerCounts]:
        """Of these subscribers, or of the group, in which what several members received counts as duplicates."""
        told = reports if self.together is None else [self.together]
        return [ledger for report in told for ledger in report.ledgers]

    def evidence(self, reports: Collection[SubscriberReport]) -> Collection[SubscriberReport]:
        """The reports that tell when messages were lost: those of these subscribers, or the group's."""
        if self.group is None or self.together is None:
            return reports
        lost = self.group["most"].lost
        if lost == sum(ledger.missing for ledger in self.together.ledgers):
            return [self.together]
        # Which of the missing messages were lost is not known, only how many.
        ledgers = []
        for ledger in self.together.ledgers:
            share = min(lost, ledger.missing)
            lost -= share
            ledgers.append(replace(ledger, missing=share, missing_ranges=[]))
        return [replace(self.together, ledgers=ledgers)]


def accounts_of(
    subscribers: Set[int],
    reports: Mapping[int, SubscriberReport],
    publishers: Mapping[int, PublisherReport],
    window_s: float,
    last_words: Mapping[int, int],
    *,
    group: bool,
) -> Accounts:
    """The accounts of all these subscribers.

    Args:
        subscribers: those that were asked.
        reports: theirs, by client; one without a report is dead or silent.
        publishers: of every publisher.
        window_s: length of the window.
        last_words: messages that subscribers told of while the step went on.
        group: whether they share the messages.
    """
    due = loss.expected(publishers)
    if not group:

        def fates(doubt: loss.Doubt) -> dict[int, loss.Fate]:
            return {c: loss.fate(reports.get(c), due, window_s, last_words.get(c, 0), doubt) for c in subscribers}

        most = fates("most")
        return Accounts(most, fates("least") if due.joined else most)
    members = [reports[c] for c in sorted(subscribers) if c in reports]
    gone = subscribers - reports.keys()
    words = sum(last_words.get(c, 0) for c in gone)
    together = united(members, publishers)
    doubtful = bool(due.joined) or any(ledger.truncated for ledger in together.ledgers)
    least = united(members, publishers, "least") if doubtful else together
    of_group: dict[loss.Doubt, loss.Fate] = {
        "most": group_fate(together, due, window_s, words),
        "least": group_fate(least, due, window_s, words, "least"),
    }
    each = {c: _share(reports.get(c), last_words.get(c, 0)) for c in subscribers}
    return Accounts(each, dict(each) if doubtful else each, of_group, together, bool(gone))


def _share(report: SubscriberReport | None, last_word: int) -> loss.Fate:
    """The account of one member."""
    if report is None:
        return loss.Fate(expected=last_word, in_window=last_word, in_time=last_word)
    received = sum(ledger.received for ledger in report.ledgers)
    in_window = sum(ledger.in_window for ledger in report.ledgers)
    return loss.Fate(expected=received, in_window=in_window, late=received - in_window, in_time=received)
