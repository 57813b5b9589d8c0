"""The domain classes of Hydra as frozen dataclasses. Standard library only.

``__post_init__`` checks invariants and raises ``ValueError`` with a text that describes valid values, so all
code that makes an object (the configuration loader, a test, a sweep) gets the same error.
"""

from hydra.model.access_settings import OWN_SERVERS, AccessTable, TlsTable, secret, user_file
from hydra.model.base import (
    ADDRESS,
    HEADER_BYTES,
    LATENCY_DIGITS,
    LATENCY_HIGHEST_US,
    LATENCY_LOWEST_US,
    Evidence,
    FieldError,
    Figure,
    GroupRole,
    Need,
    Rate,
    Role,
    Setting,
    SettingValue,
    cell_of,
    flag_names,
    number,
    setting,
    setting_of,
)
from hydra.model.bounds import Bounded, out_of_bounds
from hydra.model.cluster import (
    Agent,
    ClusterSpec,
    Constraint,
    Demand,
    Group,
    GroupEvent,
    GroupState,
    Launch,
    Operator,
    Resources,
)
from hydra.model.cpu_lists import format_cpus, parse_cpus
from hydra.model.host_samples import (
    BusyThread,
    CoreTimes,
    HostCounters,
    HostSample,
    InterfaceCounts,
    TcpConnections,
    TcpCounts,
    ThreadSample,
)
from hydra.model.load import (
    BURST,
    EVENT_KINDS,
    IMPAIRMENTS,
    MAX_IMPAIRMENTS,
    MAX_POINTS,
    RESTART,
    EventSpec,
    LoadShape,
    LoadSpec,
    Points,
    SloSpec,
    check_points,
)
from hydra.model.machine import FactChange, InterfaceRecord, MachineActivity, MachineRecord
from hydra.model.reports import (
    DRAIN_ENDS,
    LAG_BINS,
    PERCENTILES,
    AgentClock,
    DrainEnd,
    Histogram,
    HotTopicCounts,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    SubscriberReport,
    TimeSeriesFacts,
    TimeSeriesInterval,
)
from hydra.model.run_setup import (
    ClientSetup,
    HostSetup,
    MessageBytes,
    RunSetup,
    ServerFacts,
    ServerSetup,
    SetupPart,
    merged,
)
from hydra.model.scenario import APART, NativeSpec, RoleSpec, Scenario, ServerSpec, TableKind
from hydra.model.settings import (
    PUBLISHERS,
    SHARED,
    Payload,
    Settings,
    SharedSettings,
    names_of,
    shared_of,
    value_of,
    with_values,
)
from hydra.model.step import (
    SKIPPED_BY,
    USER,
    Cohort,
    CohortKind,
    ImpairmentSpec,
    ServerRestart,
    StepPlan,
    StepStatus,
)
from hydra.model.sweep import SweepSpec
from hydra.model.system_part import NoOptions, NoSystemSettings, SystemOptions, SystemPart, SystemSettings
