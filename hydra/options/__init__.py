"""The parts of commands: types of flags, flags that commands share, and how flags replace keys.

The flag of a setting is made from the setting's field (:func:`setting_flag`, :func:`system_flags`). Any other flag that
replaces a key of the scenario names the key (:func:`keyed`); no other code has to know the flag.

``hydra --help`` imports every module that defines a command, so these import only click and this one. A flag that
needs more is a function that imports it, because flags are made when their command is used (:class:`LateCommand`).
"""

from hydra.options.flag_types import (
    COUNTS,
    NUMBER,
    PATH,
    PERCENT,
    RATE,
    WORD,
    ByteCountRange,
    CountList,
    Duration,
    FiniteFloatRange,
    WholeNumberRange,
)
from hydra.options.help import (
    CLIENTS,
    CLUSTER,
    COMPARISON,
    EXPERIMENT,
    OBJECTIVES,
    OF_RUNS,
    OUTPUT,
    RUN,
    SEARCH,
    SYSTEM,
    WORKLOAD,
    flags,
    group_of,
    grouped,
)
from hydra.options.late_commands import (
    Command,
    CommandGroup,
    DerivedOption,
    LateCommand,
    ScenarioKeyOption,
    SeveralKeysOption,
    keyed,
    late_command,
    old_name,
    overrides,
)
from hydra.options.scenario_commands import (
    ExperimentCommand,
    RunCommands,
    ScenarioCommand,
    experiment_command,
    scenario_command,
)
from hydra.options.setting_flags import (
    implementation_flag,
    native_flags,
    packing_flag,
    preset_flag,
    setting_flag,
    system_flags,
)
from hydra.options.shared_flags import (
    KEY_VALUE,
    SET,
    TYPED,
    agents_flags,
    cluster_flag,
    comparing_flags,
    config_flag,
    connections_flags,
    duration_flag,
    experiment_flags,
    fixed_flags,
    held_flag,
    interleave_flag,
    json_flag,
    master_flag,
    own_cluster_flag,
    pin_flags,
    rate_flag,
    run_flags,
    search_flags,
    set_flag,
    shown,
    slo_flags,
    sweep_flags,
)
