"""All lines of the table, with their goals, and how each is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import get_args

from bench import growth, limits, memory, placement, programs, start
from bench.clients import kafka, kafka_latency, mqtt, nats, zmq, zmtp
from bench.clients.channel import Figures, Sides, Workload
from bench.clients.kafka_loop import Library
from bench.line import Figure, Line, Side, at_least, at_most, nothing
from bench.stored_runs import grid_run, hour_run

_CPU = Figure("µs of a subscriber's CPU a message")
_PUBLISHER_CPU = Figure("µs of the publisher's CPU a message")


def lines() -> Sequence[Line]:
    """Every line, in the order in which it is measured."""
    broker = kafka.Kafka()
    every = [
        *(*_limits(broker), *_zmq(), *_zmtp(), *_nats(), *_mqtt(), *_kafka(broker), *_latency()),
        *(*_command(), *_steps(), *_servers(), *_clients(), *_interrupts(), *_pages()),
        *_memory(broker),
        *(*_clients_growth(), *_group_growth(), *_placement(), *_publisher_growth(), *_row_growth()),
    ]
    needed = [line.limit for line in every if line.limit is not None and line.limit not in every]
    return [*dict.fromkeys(needed), *every]


@cache
def tcp_limit(subscribers: int, message_bytes: int, send_bytes: int = limits.SEND_BYTES) -> Line:
    """What one process can send to others over TCP; the same object for the same arguments."""
    how_much = "8 KiB" if send_bytes == limits.SEND_BYTES else "one message"
    return Line(
        "limits",
        f"TCP fan-out, {how_much} a send(), {subscribers:,} × {_size(message_bytes)}",
        "messages/s",
        None,
        partial(limits.tcp_fanout, subscribers, message_bytes, send_bytes),
        None,
        "One process writes to each socket that takes data; forked processes with one socket each count bytes for 2 s.",
        quick=send_bytes == 1 and subscribers == 30,
        pairs=3,
        pair_s=4 if subscribers < 1000 else 8,
        lacks=programs.lacks,
    )


@cache
def connected_limit(library: str, processes: int) -> Line:
    """What it takes to fork processes that connect; the same object for the same arguments.

    Args:
        library: "tcp" for plain sockets, or "zmq".
        processes: how many.
    """
    return Line(
        "limits",
        f"{processes:,} processes forked, connected: {'TCP' if library == 'tcp' else 'libzmq'}",
        "s",
        None,
        partial(limits.connected, library, processes),
        None,
        "A process forks others; each connects to one publisher, receives one message and waits. The PSS is that of a "
        "hundred of them.",
        (Figure("MB of PSS a process"),),
        quick=processes == 1000,
        pairs=3,
        pair_s=1 + processes / 1000,
        lacks=programs.lacks,
    )


def _limits(broker: kafka.Kafka) -> Iterator[Line]:
    """Limits that no other line names."""
    yield tcp_limit(30, 24, 1)
    yield tcp_limit(480, 24, 1)
    yield connected_limit("tcp", 1000)
    yield connected_limit("zmq", 1000)
    yield Line(
        "limits",
        "100 processes with one connection: librdkafka",
        "MB of PSS a process",
        None,
        partial(broker.connected_mb, 100),
        None,
        "A process forks others; each makes a consumer and asks for the offsets of a partition.",
        pairs=3,
        pair_s=4,
        lacks=kafka.lacks_native,
        within=broker,
    )


def _zmq() -> Iterator[Line]:
    how = (
        "Rate max, drops allowed, high-water marks of 1,000: messages/s that all subscribers receive in 2 s, after 1 s "
        "of messages. The bare side is one publisher, and forked subscribers of {} that only count."
    )
    for subscribers, size in ((30, 24), (120, 24), (480, 24), (30, 1000)):
        yield Line(
            "clients",
            f"native ZMQ : libzmq, {subscribers} × {_size(size)}",
            "messages/s",
            at_least(0.95),
            partial(zmq.native, subscribers, size),
            partial(zmq.libzmq, subscribers, size),
            how.format("libzmq"),
            (_CPU,),
            quick=(subscribers, size) == (30, 24),
            pair_s=9 if subscribers < 480 else 12,
            lacks=programs.lacks,
            limit=tcp_limit(subscribers, size),
        )
    for subscribers in (30, 480):
        yield Line(
            "clients",
            f"pyzmq : pyzmq, {subscribers} × 24 B",
            "messages/s",
            at_least(0.80),
            partial(zmq.pyzmq, subscribers, 24),
            partial(zmq.bare_pyzmq, subscribers, 24),
            how.format("pyzmq"),
            (_CPU,),
            quick=subscribers == 30,
            pair_s=10 if subscribers < 480 else 20,
            limit=tcp_limit(subscribers, 24),
        )


_KAFKA = (
    "One broker started by Hydra, records of 100 bytes, acks 1, batches of 16,384 bytes, linger 5 ms, one partition. "
)
_PRODUCE = "A producer sends for 2 s: acknowledged messages/s."
_CONSUME = "A consumer reads a log of {:,} messages, from the first one on."


def _kafka(broker: kafka.Kafka) -> Iterator[Line]:
    read = kafka.LOG_RECORDS
    yield Line(
        "clients",
        "native Kafka : librdkafka, producer, 100 B",
        "messages/s",
        at_least(0.97),
        partial(broker.producer, kafka.NATIVE),
        broker.bare_producer,
        _KAFKA + _PRODUCE,
        quick=True,
        pair_s=7,
        lacks=kafka.lacks_native,
        within=broker,
        limit=tcp_limit(1, 100),
    )
    yield Line(
        "clients",
        "native Kafka : librdkafka, consumer, 100 B",
        "messages/s",
        at_least(0.95),
        partial(broker.consumer, kafka.NATIVE),
        broker.bare_consumer,
        _KAFKA + _CONSUME.format(read[kafka.NATIVE]),
        quick=True,
        pair_s=8,
        lacks=kafka.lacks_native,
        within=broker,
        limit=tcp_limit(1, 100),
    )
    for count in (480, 1920):
        yield Line(
            "clients",
            f"native Kafka : librdkafka, {count:,} consumers, 100 B",
            "messages/s",
            at_least(0.95),
            partial(broker.consumers, count),
            partial(broker.bare_consumers, count),
            _KAFKA
            + f"Forked consumers that are connected read the same log, {kafka.MANY_RECORDS:,} messages together, "
            "from the first message of any of them to the last.",
            (_CPU,),
            pairs=5 if count <= 480 else 3,
            pair_s=30 if count <= 480 else 60,
            lacks=kafka.lacks_native,
            within=broker,
            limit=tcp_limit(count, 100),
        )
    for library in get_args(Library):
        yield Line(
            "clients",
            f"{library} : {library}, producer, 100 B",
            "messages/s",
            at_least(0.75),
            partial(broker.producer, library),
            partial(broker.bare_producer, library),
            _KAFKA + _PRODUCE,
            quick=library == "confluent-kafka",
            pair_s=8,
            lacks=kafka.lacks_java,
            within=broker,
            limit=tcp_limit(1, 100),
        )
        yield Line(
            "clients",
            f"{library} : {library}, consumer, 100 B",
            "messages/s",
            at_least(0.75),
            partial(broker.consumer, library),
            partial(broker.bare_consumer, library),
            _KAFKA + _CONSUME.format(read[library]),
            quick=library == "kafka-python",
            pair_s=9,
            lacks=kafka.lacks_java,
            within=broker,
            limit=tcp_limit(1, 100),
        )
    yield Line(
        "tools",
        "native Kafka : ProducerPerformance, 100 B",
        "messages/s",
        at_least(2.0),
        partial(broker.producer, kafka.NATIVE),
        broker.tool_producer,
        _KAFKA + "Hydra sends for 2 s; the tool of Kafka sends 4 million messages, the first of which warm it up.",
        quick=True,
        pair_s=12,
        lacks=kafka.lacks_native,
        within=broker,
    )
    yield Line(
        "tools",
        "native Kafka : ConsumerPerformance, 100 B",
        "messages/s",
        at_least(1.5),
        partial(broker.consumer, kafka.NATIVE),
        broker.tool_consumer,
        _KAFKA + _CONSUME.format(read[kafka.NATIVE]),
        pair_s=12,
        lacks=kafka.lacks_native,
        within=broker,
    )


def _zmtp() -> Iterator[Line]:
    how = (
        "Rate max, drops allowed: messages/s that all subscribers of one process receive in 3 s on new connections. On "
        "the bare side, a process reads as many TCP sockets with epoll and computes the messages from the bytes; the "
        "publisher is a bare loop of libzmq."
    )
    for subscribers in (480, 7680):
        line = _throughput("zmtp : TCP sockets", zmtp.SIDES, zmtp.packed(subscribers), 0.85, how)
        yield replace(line, quick=subscribers == 480, pair_s=8 + subscribers / 500)


def _nats() -> Iterator[Line]:
    how = (
        "Rate max{}: messages/s that all subscribers receive in 3 s, on new connections to one server. The bare side "
        "is one publisher, and forked subscribers of {} that only count, with the same limits."
    )
    modes = {"core": "", "jetstream": ", a stream in memory, acknowledgements of publishers and subscribers"}
    for client, library, goal in (("native", "libnats", 0.95), ("nats-py", "nats-py", 0.75)):
        for mode, subscribers in product(modes, (1, 30)):
            name = f"{'native NATS' if client == 'native' else client} : {library}, {mode}"
            load = nats.workload(client, subscribers, mode)
            line = _throughput(name, nats.SIDES, load, goal, how.format(modes[mode], library))
            yield replace(line, quick=(mode, subscribers) == ("core", 30))


def _mqtt() -> Iterator[Line]:
    how = (
        "Rate max, QoS {}: messages/s that all subscribers receive in 3 s, on new connections to one mosquitto. The "
        "bare side is one publisher, and forked subscribers of {} that only count, with the same limits."
    )
    for client, library, goal in (("native", "libmosquitto", 0.95), ("paho-mqtt", "paho-mqtt", 0.75)):
        for qos, subscribers in product((0, 1), (1, 30)):
            name = f"{'native MQTT' if client == 'native' else client} : {library}, QoS {qos}"
            load = mqtt.workload(client, subscribers, qos)
            line = _throughput(name, mqtt.SIDES, load, goal, how.format(qos, library))
            yield replace(line, quick=(qos, subscribers) == (0, 30))


def _throughput(name: str, sides: Sides, load: Workload, goal: float, how: str) -> Line:
    return Line(
        "clients",
        f"{name}, {load.subscribers:,} × {_size(load.size)}",
        "messages/s",
        at_least(goal),
        partial(_rates, sides.ours, load),
        partial(_rates, sides.bare, load),
        how,
        (_CPU, _PUBLISHER_CPU),
        pairs=5 if load.subscribers <= 480 else 3,
        pair_s=10,
        lacks=sides.lacks,
        within=sides.within,
        limit=tcp_limit(load.subscribers, load.size),
    )


def _latency() -> Iterator[Line]:
    subscribers, rate, seconds = 30, 1000.0, 5.0
    how = (
        "1,000 messages/s of one publisher: the time from the moment at which a message is due to its receipt, of all "
        "messages that 30 subscribers receive in 5 s. The bare side is a loop of {} that reads the clock for each "
        "message."
    )
    for name, library, sides, load in (
        ("native ZMQ", "libzmq", zmtp.SIDES, zmtp.paced("native", subscribers, rate, seconds)),
        ("pyzmq", "pyzmq", zmtp.SIDES, zmtp.paced("pyzmq", subscribers, rate, seconds)),
        ("native NATS", "libnats", nats.SIDES, nats.workload("native", subscribers, "core", rate, seconds)),
        ("nats-py", "nats-py", nats.SIDES, nats.workload("nats-py", subscribers, "core", rate, seconds)),
        ("native MQTT", "libmosquitto", mqtt.SIDES, mqtt.workload("native", subscribers, 0, rate, seconds)),
        ("paho-mqtt", "paho-mqtt", mqtt.SIDES, mqtt.workload("paho-mqtt", subscribers, 0, rate, seconds)),
        ("native Kafka", "librdkafka", kafka_latency.SIDES, kafka_latency.workload(subscribers, rate, seconds)),
    ):
        yield Line(
            "clients",
            f"latency, {name} : {library}, {subscribers} × {_size(load.size)}",
            "µs, p50",
            at_most(1.2),
            partial(_latencies, sides.ours, load),
            partial(_latencies, sides.bare, load),
            how.format(library),
            (Figure("µs, p99", at_most(1.2)),),
            quick=name == "native ZMQ",
            pair_s=12.0,
            lacks=sides.lacks,
            within=sides.within,
        )


def _rates(measure: Callable[[Workload], Figures], load: Workload) -> Sequence[float]:
    return measure(load).throughput


def _latencies(measure: Callable[[Workload], Figures], load: Workload) -> Sequence[float]:
    return measure(load).latency


def _size(message_bytes: int) -> str:
    return f"{message_bytes} B" if message_bytes < 1000 else f"{message_bytes / 1000:g} kB"


# --- start -----------------------------------------------------------------------------------------------------------

_CPU_S = Figure("CPU s")


def _command() -> Iterator[Line]:
    how = "CPU seconds of a process until it has ended, the mean of 5; the bare side is a Python that imports click."
    for words, goal in (("--help", 2.0), ("zmqfixed --rate 0", 3.0), ("run nosuch", 3.0), ("nosuch", 3.0)):
        name = f"hydra {words} : importing click"
        ours = partial(start.answering, *words.split())
        yield Line("start", name, "CPU s", at_most(goal), ours, start.importing_click, how, quick=words == "--help")


def _steps() -> Iterator[Line]:
    how = "hydra zmqfixed --duration 3 with pyzmq: seconds of the command, without the seconds of the window."
    yield Line(
        "start", "row of 10 clients, beside its 3 s", "s", at_most(2.0), start.beside_the_step, None, how, quick=True
    )
    how += " Four rows (10 to 13 clients) less one row, divided by three."
    yield Line("start", "each further row, beside its 3 s", "s", at_most(1.5), start.each_further_row, None, how)


def _servers() -> Iterator[Line]:
    how = (
        "Seconds until a server answers a client: started by Hydra's class for own servers, without a warm-up; and its "
        "command with the same settings, started by itself and asked every millisecond."
    )
    for name in start.SERVERS:
        yield Line(
            "start",
            f"own server up, {name} : the program alone",
            "s",
            at_most(1.3),
            partial(start.server_up, name),
            partial(start.server_alone, name),
            how,
            quick=name == "mosquitto",
            lacks=partial(start.server_missing, name),
        )


def _clients() -> Iterator[Line]:
    ready = (
        "hydra zmqfixed at 10 messages/s: seconds from the launch until every subscriber had a probe. The bare side: "
    )
    forks = (
        "forked processes with a socket of the same library, from the start of the program until each had a message."
    )
    yield Line(
        "start",
        "1,000 pyzmq ready : fork, connect, first message",
        "s",
        at_most(1.5),
        lambda: start.clients_of("pyzmq", 1000)[0],
        partial(start.bare_pyzmq, 1000),
        ready + forks,
        pairs=3,
        pair_s=25.0,
    )
    for clients in (1000, 10_240):
        yield Line(
            "start",
            f"{clients:,} native ready : fork, connect, first message",
            "s",
            at_most(1.5),
            partial(_first, "native", clients),
            partial(_connected, clients),
            ready + forks,
            quick=clients == 1000,
            pairs=3,
            pair_s=12.0 if clients == 1000 else 60.0,
            lacks=programs.lacks,
        )
    yield Line(
        "start",
        "100,000 zmtp ready : as many TCP sockets",
        "s",
        at_most(2.0),
        partial(_first, "zmtp", 100_000, "--publishers", "6", "--subscriptions", "one"),
        partial(start.bare_sockets, 100_000, 6),
        ready + "six pairs of processes with 16,667 TCP connections each, until each connection had a message.",
        pairs=3,
        pair_s=60.0,
        lacks=programs.lacks,
    )
    how = (
        "hydra zmqfixed at 10 messages/s with native clients: seconds until all have acknowledged the settings of a "
        "step that is not their first; seconds from the end of its window until its row is printed."
    )
    for clients, configured, printed in ((1000, None, 0.3), (10_240, at_most(0.3), 1.0)):
        yield Line(
            "start",
            f"{clients:,} native configured, and row printed after the window",
            "s configured",
            configured,
            partial(_later, clients),
            None,
            how,
            (Figure("s printed", at_most(printed)),),
            pair_s=10.0 if clients == 1000 else 40.0,
            lacks=programs.lacks,
        )
    yield Line(
        "start",
        "100,000 simulated, row printed after the window",
        "s",
        at_most(5.0),
        partial(start.simulated_row, 100_000),
        None,
        "A real controller with 100 simulated relays of 1,000 clients: seconds from the end of the window until the "
        "row is printed.",
        pair_s=20.0,
    )


def _first(client: str, clients: int, *words: str) -> float:
    return start.clients_of(client, clients, *words)[0]


def _connected(clients: int) -> float:
    return limits.connected("zmq", clients)[0]


def _later(clients: int) -> Sequence[float]:
    return start.clients_of("native", clients)[1:]


def _interrupts() -> Iterator[Line]:
    how = (
        "SIGINT to hydra zmqfixed in a window of 10 messages/s: seconds until no process of the run is left, by a "
        "parent that adopts every orphan."
    )
    for client, clients, most in (("pyzmq", 1000, 2.0), ("native", 10_240, 5.0)):
        yield Line(
            "start",
            f"Ctrl-C until nothing is left, {clients:,} {client}",
            "s",
            at_most(most),
            partial(start.interrupted, client, clients),
            None,
            how,
            pairs=3,
            pair_s=20.0 if client == "pyzmq" else 40.0,
            lacks=programs.lacks,
        )


def _pages() -> Iterator[Line]:
    how = "Seconds of hydra report for a stored run of seeded reports, from its start to its end."
    runs = (
        ("7 rows × 100 clients", partial(grid_run, 7, 100), 2.0),
        ("100 rows × 1,000 clients", partial(grid_run, 100, 1000), 10.0),
        ("one hour of seconds", hour_run, 5.0),
    )
    for name, made, most in runs:
        run = start.StoredRun(made)
        yield Line(
            *("start", f"hydra report, {name}", "s", at_most(most), run.report, None, how, (_CPU_S,)),
            quick=most == 2.0,
            pair_s=most,
            within=run,
        )
    folder = start.StoredRun(partial(start.many_runs, 1000))
    how = (
        "Seconds from the start of hydra serve, without its cache, until its list of 1,000 runs of 7 rows has arrived."
    )
    yield Line(
        *("start", "hydra serve, first list of 1,000 runs", "s", at_most(5.0), folder.first_list, None, how, (_CPU_S,)),
        pair_s=10.0,
        within=folder,
    )


# --- memory ----------------------------------------------------------------------------------------------------------


def _memory(broker: kafka.Kafka) -> Iterator[Line]:
    how = (
        f"PSS of one of {memory.CLIENTS} subscriber processes of hydra {{}} behind a step of 20 messages; the bare "
        f"side: {memory.CLIENTS} forked processes with one connection of the same library."
    )
    sides: Sequence[tuple[str, str, str, Side, Callable[[], str], AbstractContextManager[object]]] = (
        ("pyzmq", "zmqfixed", "pyzmq", memory.bare_pyzmq, nothing, nullcontext()),
        (
            "native ZMQ",
            "zmqfixed",
            "native",
            lambda: limits.connected("zmq", memory.CLIENTS)[1],
            programs.lacks,
            nullcontext(),
        ),
        (
            "native Kafka",
            "kafka-fixed",
            "native",
            partial(broker.connected_mb, memory.CLIENTS),
            kafka.lacks_native,
            broker,
        ),
    )
    for name, scenario, client, bare, lacks, within in sides:
        yield Line(
            "memory",
            f"subscriber of {name} : bare process",
            "MB of PSS",
            at_most(1.25),
            partial(memory.ours, scenario, client),
            bare,
            how.format(scenario),
            quick=name == "pyzmq",
            pair_s=20.0,
            lacks=lacks,
            within=within,
        )
    how = "Largest memory of one of 10 native subscribers of ZMQ, by the kernel."
    for name, ours, bare in (
        ("100,000 messages : 5,000", partial(memory.after, 100_000), partial(memory.after, 5_000)),
        ("10 steps : 2", partial(memory.after, 5_000, 10), partial(memory.after, 5_000, 2)),
    ):
        yield Line(
            "memory",
            f"subscriber behind {name}",
            "bytes",
            at_most(1.02),
            ours,
            bare,
            how,
            pair_s=30.0,
            lacks=programs.lacks,
        )


# --- growth ----------------------------------------------------------------------------------------------------------

_LINEAR = at_most(1.05)
_OF_CLIENTS = (Figure("slope of CPU", _LINEAR), Figure("slope of controller's memory", _LINEAR))


def _clients_growth() -> Iterator[Line]:
    how = (
        "hydra zmqfixed at 1 message/s, at each client count: seconds until all are ready, of a later configuration, "
        "and of reports until they are stored; CPU seconds of the whole run; the controller's highest memory. A slope "
        "is that of a line through the logarithms of the last two decades."
    )
    kinds = (
        ("pyzmq", "pyzmq", 1, (10, 100, 1000), 25.0),
        ("native", "native", 1, (10, 100, 1000, 10_000), 60.0),
        ("native, 100 to a process", "native", 100, (100, 1000, 10_000), 40.0),
        ("zmtp", "zmtp", 1, (1000, 10_000, 100_000), 80.0),
    )
    for name, client, packed, sizes, pair_s in kinds:
        found = growth.Growth(sizes, partial(growth.of_clients, client, packed=packed))
        yield _growth_line(f"{name}, {sizes[0]:,} to {sizes[-1]:,} clients", found, how, pair_s)
    how = (
        "The same with a real controller and simulated relays of 1,000 clients; CPU seconds are those of the "
        "controller without its window."
    )
    sizes = (10_000, 100_000, 1_000_000)
    found = growth.Growth(sizes, growth.of_simulated)
    yield _growth_line(f"simulated, {sizes[0]:,} to {sizes[-1]:,} clients", found, how, 120.0, needs_native=False)


def _growth_line(name: str, found: growth.Growth, how: str, pair_s: float, *, needs_native: bool = True) -> Line:
    return Line(
        "growth",
        f"start, configuring and reports of {name}",
        "slope of seconds",
        _LINEAR,
        found.slopes,
        None,
        how,
        _OF_CLIENTS,
        pairs=3,
        pair_s=pair_s,
        lacks=programs.lacks if needs_native else nothing,
        points=found.points,
    )


def _group_growth() -> Iterator[Line]:
    how = "A real controller with simulated relays: seconds until all clients have acknowledged their settings."
    yield Line(
        "growth",
        "10,000 simulated configured, 100 groups : 1",
        "s",
        at_most(2.0),
        partial(growth.configured_in, 100),
        partial(growth.configured_in, 1),
        how,
        quick=True,
        pair_s=20.0,
    )
    yield Line(
        "growth",
        "each group from 100 to 1,000, of 10,000 simulated",
        "open files",
        at_most(4.0),
        growth.each_group,
        None,
        "A real controller with simulated relays: its open files in the window, and its messages with settings, in "
        "1,000 groups less those in 100, divided by 900.",
        (Figure("messages", at_most(1.0)),),
        pairs=3,
        pair_s=25.0,
    )
    yield Line(
        "growth",
        "1,000 native configured, 100 groups : 1",
        "s",
        at_most(2.0),
        partial(growth.really_configured_in, 100),
        partial(growth.really_configured_in, 1),
        "hydra zmqfixed: seconds until all have acknowledged the settings of a step that is not their first.",
        pairs=3,
        pair_s=25.0,
        lacks=programs.lacks,
    )


def _placement() -> Iterator[Line]:
    for case in placement.CASES:
        yield Line(
            "growth",
            f"2,000 groups placed on 500 agents: {case}",
            "s",
            at_most(0.5),
            partial(placement.placed, case),
            None,
            "Seconds of the function that places groups, in one process without a cluster.",
            pair_s=1.0,
        )


def _publisher_growth() -> Iterator[Line]:
    how = "CPU of header, ledger and latency of one message, in batches of 1,000 that the publishers sent in turn."
    for name, account, lacks in (
        ("pyzmq", growth.python_account, nothing),
        ("native", growth.native_account, programs.lacks),
    ):
        yield Line(
            "growth",
            f"account of a message, {name}, 100 publishers : 1",
            "ns",
            at_most(1.1),
            partial(account, 100),
            partial(account, 1),
            how,
            quick=name == "pyzmq",
            pair_s=2.0,
            lacks=lacks,
        )
    found = growth.Growth((1, 10, 100), growth.of_publishers)
    yield Line(
        "growth",
        "memory of a subscriber, 1 to 100 publishers",
        "slope",
        _LINEAR,
        found.slopes,
        None,
        "hydra zmqfixed, 100 native subscribers that hear all publishers, 2,000 messages/s: the largest memory of one.",
        pairs=3,
        pair_s=25.0,
        lacks=programs.lacks,
    )


def _row_growth() -> Iterator[Line]:
    how = (
        "The code that runs a scenario, with stored reports of 10 subscribers in place of measured steps: CPU seconds "
        "of the controller a row (decided, stored, shown, written into tables); of a finished run that is resumed; "
        "bytes of run.db a row."
    )
    for rows, pair_s in ((100, 4.0), (10_000, 200.0)):
        yield Line(
            "growth",
            f"a row, {rows:,} rows : {rows // 10:,}",
            "CPU s",
            at_most(1.1),
            partial(growth.of_rows, rows),
            partial(growth.of_rows, rows // 10),
            how,
            (Figure("CPU s of --resume", at_most(1.1)), Figure("bytes of run.db", at_most(1.1))),
            pairs=3,
            pair_s=pair_s,
        )
