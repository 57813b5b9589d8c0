"""All lines of the table, with their goals, and how each is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from itertools import product

from bench import growth, limits, memory, placement, programs, start
from bench.clients import kafka, kafka_latency, mqtt, nats, zmq
from bench.clients.channel import Figures, Sides, Workload
from bench.line import Figure, Line, Side, at_least, at_most, nothing
from bench.stored_runs import grid_run, hour_run

_CPU = Figure("µs of a subscriber's CPU a message")
_PUBLISHER_CPU = Figure("µs of the publisher's CPU a message")

_native_line = partial(Line, lacks=programs.lacks)
"""A line that needs compiled programs."""
_long_line = partial(_native_line, pairs=3)
"""One whose measurements take long."""
_memory_line = partial(_long_line, "memory", timed=False)


def _lacks_for(client: str, clients: int) -> str:
    """What this machine lacks to compile programs, or for a run with this number of clients."""
    return programs.lacks() or start.lacks(client, clients)


def _at(measure: Callable[..., float | Sequence[float]], size: object, least: object) -> tuple[Side, Side]:
    """The two sides of a line that compares a size with a smaller one."""
    return partial(measure, size), partial(measure, least)


def lines() -> Sequence[Line]:
    """Every line, in the order in which it is measured."""
    broker = kafka.Kafka()
    every = [
        *(*_limits(), *_zmq(), *_served(), *_kafka(broker), *_latency(), *_tools(broker)),
        *(*_command(), *_steps(), *_servers(), *_ready(), *_later(), *_interrupts(), *_pages()),
        *(*_memory(broker), *_added()),
        *(*_clients_growth(), *_group_growth(), *_placement(), *_publisher_growth(), *_row_growth()),
    ]
    needed = [line.limit for line in every if line.limit is not None and line.limit not in every]
    return [*dict.fromkeys(needed), *every]


# --- limits ----------------------------------------------------------------------------------------------------------


@cache
def tcp_limit(subscribers: int, message_bytes: int, send_bytes: int = limits.SEND_BYTES) -> Line:
    """What one process can send to others over TCP; the same object for the same arguments."""
    how_much = "8 KiB" if send_bytes == limits.SEND_BYTES else "one message"
    return _long_line(
        "limits",
        f"TCP fan-out, {how_much} a send(), {subscribers:,} × {_size(message_bytes)}",
        "messages/s",
        None,
        partial(limits.tcp_fanout, subscribers, message_bytes, send_bytes),
        None,
        "One process writes to each socket that takes data; forked processes with one socket each count bytes for 2 s.",
        quick=send_bytes == 1 and subscribers == 30,
        pair_s=4 if subscribers < 1000 else 8,
    )


@cache
def connected_limit(library: str, processes: int) -> Line:
    """What it takes to fork processes that connect; the same object for the same arguments.

    Args:
        library: "tcp" for plain sockets, or "zmq".
        processes: how many.
    """
    return _long_line(
        "limits",
        f"{processes:,} processes forked, connected: {'TCP' if library == 'tcp' else 'libzmq'}",
        "s",
        None,
        partial(limits.connected, library, processes),
        None,
        "A process forks others; each connects to one publisher, receives one message and waits. The PSS is that of a "
        "hundred of them.",
        (Figure("MB of PSS a process", timed=False),),
        quick=processes == 1000,
        pair_s=1 + processes / 1000,
    )


def _limits() -> Iterator[Line]:
    """Limits that no other line names."""
    yield from (tcp_limit(30, 24, 1), tcp_limit(480, 24, 1), connected_limit("zmq", 1000))


# --- clients ---------------------------------------------------------------------------------------------------------


def _throughput(name: str, sides: Sides, load: Workload, goal: float, how: str, *, quick: bool) -> Line:
    return Line(
        "clients",
        f"{name}, {load.subscribers:,} × {_size(load.size)}",
        "messages/s",
        at_least(goal),
        partial(_rates, sides.ours, load),
        partial(_rates, sides.bare, load),
        how,
        (_CPU, _PUBLISHER_CPU),
        quick=quick,
        pairs=5 if load.subscribers <= 480 else 3,
        pair_s=10 + min(load.subscribers, 960) / 80,
        lacks=sides.lacks,
        within=sides.within,
        limit=tcp_limit(load.subscribers, load.size),
    )


def _rates(measure: Callable[[Workload], Figures], load: Workload) -> Sequence[float]:
    return measure(load).throughput


def _zmq() -> Iterator[Line]:
    fan_out = (
        "Rate max, drops allowed, high-water marks of 1,000: messages/s that all subscribers receive in 2 s, after 1 s "
        "of messages. The bare side is one publisher, and forked subscribers of {} that only count."
    )
    packed = (
        "Rate max, drops allowed: messages/s that all subscribers of one process receive in 3 s on new connections. On "
        "the bare side, a process reads as many TCP sockets with epoll and computes the messages from the bytes; the "
        "publisher is a bare loop of libzmq."
    )
    for name, library, client, goal, how, sizes in (
        ("native ZMQ", "libzmq", "native", 0.95, fan_out, ((30, 24), (120, 24), (480, 24), (30, 1000))),
        ("pyzmq", "pyzmq", "pyzmq", 0.80, fan_out, ((30, 24), (480, 24))),
        ("zmtp", "TCP sockets", "zmtp", 0.85, packed, ((480, 24), (7680, 24))),
    ):
        for n, size in enumerate(sizes):
            load = zmq.fastest(client, *size)
            yield _throughput(f"{name} : {library}", zmq.SIDES, load, goal, how.format(library), quick=n == 0)


def _served() -> Iterator[Line]:
    """Systems with a server in one process."""
    how = (
        "Rate max, {}: messages/s that all subscribers receive in 3 s, on new connections to one {}. The bare side is "
        "one publisher, and forked subscribers of {} that only count, with the same limits."
    )
    stream = "a stream in memory, acknowledgements of publishers and subscribers"
    of_nats = {"core": "without a stream", "jetstream": stream}
    of_mqtt = {"QoS 0": "QoS 0", "QoS 1": "QoS 1"}
    for name, library, client, goal, modes, sides, server in (
        ("native NATS", "libnats", "native", 0.95, of_nats, nats.SIDES, "nats-server"),
        ("nats-py", "nats-py", "nats-py", 0.75, of_nats, nats.SIDES, "nats-server"),
        ("native MQTT", "libmosquitto", "native", 0.95, of_mqtt, mqtt.SIDES, "mosquitto"),
        ("paho-mqtt", "paho-mqtt", "paho-mqtt", 0.75, of_mqtt, mqtt.SIDES, "mosquitto"),
    ):
        for (mode, what), subscribers in product(modes.items(), (1, 30)):
            load = (
                nats.workload(client, subscribers, mode)
                if sides is nats.SIDES
                else mqtt.workload(client, subscribers, int(mode[-1]))
            )
            text = how.format(what, server, library)
            quick = subscribers == 30 and mode in ("core", "QoS 0")
            yield _throughput(f"{name} : {library}, {mode}", sides, load, goal, text, quick=quick)


_KAFKA = (
    "One broker started by Hydra, records of 100 bytes, acks 1, batches of 16,384 bytes, linger 5 ms, one partition. "
)
_CONSUME = "A consumer reads a log of {:,} messages, from the first one on."


def _kafka(broker: kafka.Kafka) -> Iterator[Line]:
    for client, library, of_producer, of_consumer in (
        (kafka.NATIVE, "librdkafka", 0.97, 0.95),
        ("confluent-kafka", "confluent-kafka", 0.75, 0.75),
        ("kafka-python", "kafka-python", 0.75, 0.75),
    ):
        is_native = client == kafka.NATIVE
        produce, consume = (
            "A producer sends for 2 s: acknowledged messages/s.",
            _CONSUME.format(kafka.LOG_RECORDS[client]),
        )
        for role, goal, ours, bare, how in (
            ("producer", of_producer, broker.producer, broker.bare_producer, produce),
            ("consumer", of_consumer, broker.consumer, broker.bare_consumer, consume),
        ):
            yield Line(
                "clients",
                f"{'native Kafka' if is_native else client} : {library}, {role}, 100 B",
                "messages/s",
                at_least(goal),
                partial(ours, client),
                partial(bare, client),
                _KAFKA + how,
                (Figure(f"µs of the {role}'s CPU a message"),),
                quick=is_native or role == "consumer",
                pair_s=9,
                lacks=kafka.lacks_native if is_native else kafka.lacks_java,
                within=broker,
                limit=tcp_limit(1, 100),
            )
    for count, pairs, pair_s in ((480, 5, 30), (1920, 3, 60)):
        yield Line(
            "clients",
            f"native Kafka : librdkafka, {count:,} consumers, 100 B",
            "messages/s",
            at_least(0.95),
            partial(broker.consumers, count),
            partial(broker.bare_consumers, count),
            f"{_KAFKA}Forked consumers that wait at the end of a log read it, {kafka.MANY_RECORDS:,} messages in all, "
            "from the first message of any of them to the last.",
            (_CPU,),
            pairs=pairs,
            pair_s=pair_s,
            lacks=kafka.lacks_native,
            within=broker,
            limit=tcp_limit(count, 100),
        )


def _tools(broker: kafka.Kafka) -> Iterator[Line]:
    send = "Hydra sends for 2 s; the tool of Kafka sends 4 million messages, the first of which warm it up."
    read = _CONSUME.format(kafka.LOG_RECORDS[kafka.NATIVE])
    for tool, goal, ours, bare, how in (
        ("ProducerPerformance", 2.0, broker.producer, broker.tool_producer, send),
        ("ConsumerPerformance", 1.5, broker.consumer, broker.tool_consumer, read),
    ):
        yield Line(
            "tools",
            f"native Kafka : {tool}, 100 B",
            "messages/s",
            at_least(goal),
            partial(_first_of, ours, kafka.NATIVE),
            bare,
            _KAFKA + how,
            quick=tool == "ProducerPerformance",
            pair_s=12,
            lacks=kafka.lacks_native,
            within=broker,
        )
    for subscribers in (1, 30):
        load = nats.workload("native", subscribers, "core")
        yield Line(
            "tools",
            f"native NATS : nats bench, {subscribers} × {_size(load.size)}",
            "messages/s",
            None,
            partial(_first_of, _rates, nats.SIDES.ours, load),
            partial(nats.tool, subscribers),
            "Rate max, without a stream: messages/s that all subscribers receive in 3 s, on new connections to one "
            "nats-server. The subscribers of `nats bench` are in one process, and receive 9 million messages together.",
            quick=subscribers == 30,
            pair_s=16,
            lacks=nats.lacks_tool,
            within=nats.SIDES.within,
        )


def _first_of(measure: Callable[..., Sequence[float]], *arguments: object) -> float:
    """The first figure of a measurement."""
    return measure(*arguments)[0]


def _latency() -> Iterator[Line]:
    subscribers, rate, seconds = paced = 30, 1000.0, 5.0
    how = (
        "1,000 messages/s of one publisher: the time from the moment at which a message is due to its receipt, of all "
        "messages that 30 subscribers receive in 5 s. The bare side is a loop of {} that reads the clock for each "
        "message."
    )
    for name, library, sides, load in (
        ("native ZMQ", "libzmq", zmq.SIDES, zmq.paced("native", *paced)),
        ("pyzmq", "pyzmq", zmq.SIDES, zmq.paced("pyzmq", *paced)),
        ("native NATS", "libnats", nats.SIDES, nats.workload("native", subscribers, "core", rate, seconds)),
        ("nats-py", "nats-py", nats.SIDES, nats.workload("nats-py", subscribers, "core", rate, seconds)),
        ("native MQTT", "libmosquitto", mqtt.SIDES, mqtt.workload("native", subscribers, 0, rate, seconds)),
        ("paho-mqtt", "paho-mqtt", mqtt.SIDES, mqtt.workload("paho-mqtt", subscribers, 0, rate, seconds)),
        ("native Kafka", "librdkafka", kafka_latency.SIDES, kafka_latency.workload(*paced)),
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
    further = f"{how} Four rows (10 to 13 clients) less one row, divided by three."
    for name, goal, ours, text, pair_s in (
        ("row of 10 clients, beside its 3 s", 2.0, start.beside_the_step, how, 5.0),
        ("each further row, beside its 3 s", 1.5, start.each_further_row, further, 23.0),
    ):
        yield Line("start", name, "s", at_most(goal), ours, None, text, quick=goal == 2.0, pair_s=pair_s)


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


def _ready() -> Iterator[Line]:
    how = (
        "hydra zmqfixed at 10 messages/s: seconds from the launch until every subscriber had a probe. The bare side: {}"
    )
    forks = how.format(
        "forked processes with a socket of the same library, from the start of the program until each had a message."
    )
    pairs = how.format("six pairs of processes with 16,667 TCP connections each, until each connection had a message.")
    each_one = ("--publishers", "6", "--subscriptions", "one")
    after_fork = "fork, connect, first message"
    for clients, client, bare_name, goal, bare, pair_s, text in (
        (1000, "pyzmq", after_fork, 1.5, partial(start.bare_pyzmq, 1000), 25.0, forks),
        (1000, "native", after_fork, 1.5, partial(_first_of, limits.connected, "zmq", 1000), 12.0, forks),
        (10_240, "native", after_fork, 1.5, partial(_first_of, limits.connected, "zmq", 10_240), 60.0, forks),
        (100_000, "zmtp", "as many TCP sockets", 2.0, partial(start.bare_sockets, 100_000, 6), 60.0, pairs),
    ):
        is_packed = client == "zmtp"
        yield _long_line(
            "start",
            f"{clients:,} {client} ready : {bare_name}",
            "s",
            at_most(goal),
            partial(_first_of, start.clients_of, client, clients, *(each_one if is_packed else ())),
            bare,
            text,
            quick=(clients, client) == (1000, "native"),
            pair_s=pair_s,
            lacks=programs.lacks if is_packed else partial(_lacks_for, client, clients),
            limit=None if is_packed else connected_limit("tcp", clients),
        )


def _later() -> Iterator[Line]:
    how = (
        "hydra zmqfixed at 10 messages/s with native clients: seconds until all have acknowledged the settings of a "
        "step that is not their first; seconds from the end of its window until its row is printed."
    )
    for clients, configured, printed in ((1000, None, 0.3), (10_240, at_most(0.3), 1.0)):
        yield _native_line(
            "start",
            f"{clients:,} native configured, and row printed after the window",
            "s configured",
            configured,
            partial(_settings_and_row, clients),
            None,
            how,
            (Figure("s printed", at_most(printed)),),
            quick=clients == 1000,
            pairs=5 if clients == 1000 else 3,
            pair_s=10.0 if clients == 1000 else 40.0,
            lacks=partial(_lacks_for, "native", clients),
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


def _settings_and_row(clients: int) -> Sequence[float]:
    return start.clients_of("native", clients)[1:]


def _interrupts() -> Iterator[Line]:
    how = (
        "SIGINT to hydra zmqfixed in a window of 10 messages/s: seconds until no process of the run is left, by a "
        "parent that adopts every orphan."
    )
    for client, clients, most, pair_s in (("pyzmq", 1000, 2.0, 20.0), ("native", 10_240, 5.0, 40.0)):
        name = f"Ctrl-C until nothing is left, {clients:,} {client}"
        ours = partial(start.interrupted, client, clients)
        yield _long_line(
            *("start", name, "s", at_most(most), ours, None, how),
            quick=client == "pyzmq",
            pair_s=pair_s,
            lacks=partial(_lacks_for, client, clients),
        )


def _pages() -> Iterator[Line]:
    report = "Seconds of hydra report for a stored run of seeded reports, from its start to its end."
    serve = (
        "Seconds from the start of hydra serve, without its cache, until its list of 1,000 runs of 7 rows has arrived."
    )
    for name, made, most, pair_s, ours, how in (
        ("report, 7 rows × 100 clients", partial(grid_run, 7, 100), 2.0, 2.0, start.StoredRun.report, report),
        ("report, 100 rows × 1,000 clients", partial(grid_run, 100, 1000), 10.0, 10.0, start.StoredRun.report, report),
        ("report, one hour of seconds", hour_run, 5.0, 5.0, start.StoredRun.report, report),
        (
            "serve, first list of 1,000 runs",
            partial(start.many_runs, 1000),
            5.0,
            10.0,
            start.StoredRun.first_list,
            serve,
        ),
    ):
        run = start.StoredRun(made)
        yield Line(
            *("start", f"hydra {name}", "s", at_most(most), partial(ours, run), None, how, (_CPU_S,)),
            quick=most == 2.0,
            pair_s=pair_s,
            within=run,
        )


# --- memory ----------------------------------------------------------------------------------------------------------


def _memory(broker: kafka.Kafka) -> Iterator[Line]:
    """A client of each implementation, beside the least memory that a process of its library takes."""
    how = (
        f"PSS of one of {memory.CLIENTS} subscriber processes of hydra {{}} behind a step of 20 messages; the bare "
        f"side: {memory.CLIENTS} forked processes with one connection of the same library."
    )
    alone = (programs.lacks, nullcontext())
    of_nats, of_mqtt = ((sides.lacks, sides.within) for sides in (nats.SIDES, mqtt.SIDES))
    native_kafka, python_kafka = (kafka.lacks_native, broker), (kafka.lacks_java, broker)
    nats_load = nats.workload("native", memory.CLIENTS, "core")
    mqtt_load = mqtt.workload("native", memory.CLIENTS, 0)
    rows: Sequence[tuple[str, str, str, Side, tuple[Callable[[], str], AbstractContextManager[object]]]] = (
        ("pyzmq", "zmqfixed", "pyzmq", memory.bare_pyzmq, alone),
        ("native ZMQ", "zmqfixed", "native", memory.bare_libzmq, alone),
        ("native NATS", "nats-fixed", "native", partial(memory.bare_native, nats.SIDES, nats_load), of_nats),
        ("nats-py", "nats-fixed", "nats-py", partial(memory.bare_python, "nats-py", nats.SIDES), of_nats),
        ("native MQTT", "mqtt-fixed", "native", partial(memory.bare_native, mqtt.SIDES, mqtt_load), of_mqtt),
        ("paho-mqtt", "mqtt-fixed", "paho-mqtt", partial(memory.bare_python, "paho-mqtt", mqtt.SIDES), of_mqtt),
        ("native Kafka", "kafka-fixed", "native", partial(broker.connected_mb, kafka.NATIVE), native_kafka),
        *(
            (library, "kafka-fixed", library, partial(broker.connected_mb, library), python_kafka)
            for library in ("confluent-kafka", "kafka-python")
        ),
    )
    for name, scenario, client, bare, (lacks, within) in rows:
        yield _memory_line(
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
    yield _memory_line(
        f"{memory.PACKED:,} subscribers of zmtp : as many TCP sockets",
        "MB of PSS",
        at_most(1.25),
        partial(memory.ours, "zmqfixed", "zmtp", memory.PACKED),
        partial(memory.bare_native, zmq.SIDES, zmq.fastest("zmtp", memory.PACKED)),
        "PSS of the process of all subscribers of hydra zmqfixed behind a step of 20 messages; the bare side: a "
        "process that has connected as many TCP sockets, subscribed, and reads them with epoll.",
        pair_s=15.0,
    )


def _added() -> Iterator[Line]:
    yield _memory_line(
        "what a zmtp subscriber adds to its process",
        "bytes a message of a step",
        at_most(8),
        memory.added,
        None,
        "Memory of a process = its start + subscribers × (a × messages of the largest step + b from the first report "
        "on + c × further steps), with at most 2,048 messages: from then on, counters replace the list of latencies. "
        "Largest memory of a process of 1,000 subscribers, by the kernel: a from steps of 1,000 and of 100 messages, b "
        "and c from ten steps.",
        (
            Figure("bytes, first report", at_most(14_000), timed=False),
            Figure("bytes a further step", at_most(64), timed=False),
        ),
        pair_s=40.0,
    )
    how = "Largest memory of one of 10 subscribers of ZMQ at 20,000 messages/s, by the kernel."
    for name, client, many, few in (
        ("100,000 messages : 5,000", "native", (100_000,), (5_000,)),
        ("100,000 messages : 5,000", "pyzmq", (100_000,), (5_000,)),
        ("10 steps : 2", "native", (5_000, 10), (5_000, 2)),
        ("10 steps : 2", "pyzmq", (5_000, 10), (5_000, 2)),
    ):
        yield _memory_line(
            f"{client} subscriber behind {name}",
            "bytes",
            at_most(1.02),
            partial(memory.after, client, *many),
            partial(memory.after, client, *few),
            how,
            pair_s=20.0,
        )


# --- growth ----------------------------------------------------------------------------------------------------------

_LINEAR = at_most(1.05)
_OF_CLIENTS = (Figure("slope of CPU", _LINEAR), Figure("slope of controller's memory", _LINEAR, timed=False))


def _clients_growth() -> Iterator[Line]:
    how = (
        "hydra {} at 1 message/s, at each client count: seconds until all are ready, of a later configuration, "
        "and of reports until they are stored; CPU seconds of the whole run; the controller's highest memory. A slope "
        "is that of a line through the logarithms of the last two decades."
    )
    simulated = (
        "The same with a real controller and simulated relays of 1,000 clients; CPU seconds are those of the "
        "controller without its window."
    )
    for name, scenario, client, sizes, pair_s in (
        ("pyzmq", "zmqfixed", "pyzmq", (10, 100, 1000), 25.0),
        ("native", "zmqfixed", "native", (10, 100, 1000, 10_000), 60.0),
        ("native, 100 to a process", "zmqfixed", "packed", (100, 1000, 10_000), 40.0),
        ("zmtp", "zmqfixed", "zmtp", (1000, 10_000, 100_000), 80.0),
        ("native Kafka", "kafka-fixed", "native", (10, 100, 1000), 60.0),
        ("native NATS", "nats-fixed", "native", (10, 100, 1000), 30.0),
        ("native MQTT", "mqtt-fixed", "native", (10, 100, 1000), 30.0),
        ("simulated", "", "", (10_000, 100_000, 1_000_000), 120.0),
    ):
        costs = partial(growth.of_clients, scenario, client) if scenario else growth.of_simulated
        lacks = programs.lacks if scenario else nothing
        found = growth.Growth(sizes, costs)
        yield Line(
            "growth",
            f"start, configuring and reports of {name}, {sizes[0]:,} to {sizes[-1]:,} clients",
            "slope of seconds",
            _LINEAR,
            found.slopes,
            None,
            how.format(scenario) if scenario else simulated,
            _OF_CLIENTS,
            quick=name == "pyzmq",
            pairs=3,
            pair_s=pair_s,
            lacks=partial(_lacks_for, client, sizes[-1]) if name == "native" else lacks,
            points=found.points,
        )


def _group_growth() -> Iterator[Line]:
    how = "A real controller with simulated relays: seconds until all clients have acknowledged their settings."
    real = "hydra zmqfixed: seconds until all have acknowledged the settings of a step that is not their first."
    for name, configured, text, lacks in (
        ("10,000 simulated", growth.configured_in, how, nothing),
        ("1,000 native", growth.really_configured_in, real, programs.lacks),
    ):
        yield Line(
            "growth",
            f"{name} configured, 100 groups : 1",
            "s",
            at_most(2.0),
            *_at(configured, 100, 1),
            text,
            quick=lacks is nothing,
            pair_s=20.0,
            lacks=lacks,
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
        (Figure("messages", at_most(1.0), timed=False),),
        pairs=3,
        pair_s=25.0,
        timed=False,
    )


def _placement() -> Iterator[Line]:
    how = "Seconds of the function that places groups, in one process without a cluster."
    for case in placement.CASES:
        name, ours = f"2,000 groups placed on 500 agents: {case}", partial(placement.placed, case)
        yield Line("growth", name, "s", at_most(0.5), ours, None, how, pair_s=1.0)


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
            *_at(account, 100, 1),
            how,
            quick=name == "pyzmq",
            pair_s=2.0,
            lacks=lacks,
        )
    found = growth.Growth((1, 10, 100), growth.of_publishers)
    yield _long_line(
        "growth",
        "memory of a subscriber, 1 to 100 publishers",
        "slope",
        _LINEAR,
        found.slopes,
        None,
        "hydra zmqfixed, 100 native subscribers that hear all publishers, 2,000 messages/s: the largest memory of one.",
        pair_s=25.0,
        timed=False,
    )


def _row_growth() -> Iterator[Line]:
    constant = at_most(1.1)
    stored = Figure("bytes of run.db", constant, timed=False)
    yield _long_line(
        "growth",
        "a real row, 100 rows : 10",
        "CPU s",
        constant,
        *_at(growth.of_real_rows, 100, 10),
        "hydra zmqfixed with 10 native subscribers and steps of 0.2 s: CPU seconds of the controller for each row "
        "behind the first; bytes of run.db a row.",
        (stored,),
        pair_s=70.0,
    )
    yield Line(
        "growth",
        "a row, 10,000 rows : 1,000",
        "CPU s",
        constant,
        *_at(growth.of_rows, 10_000, 1000),
        "The code that runs a scenario, with stored reports of 10 subscribers in place of measured steps: CPU seconds "
        "of the controller a row (decided, stored, shown, written into tables); of a finished run that is resumed; "
        "bytes of run.db a row.",
        (Figure("CPU s of --resume", constant), stored),
        pairs=3,
        pair_s=200.0,
    )
