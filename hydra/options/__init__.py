"""The parts of commands: types of flags, flags that commands share, and how flags replace keys.

The flag of a setting is made from the setting's field (:func:`setting_flag`, :func:`system_flags`). Any other flag that
replaces a key of the scenario names the key (:func:`keyed`); no other code has to know the flag.

``hydra --help`` imports every module that defines a command, so these import only click and this package. A flag that
needs more is a function that imports it, because flags are made when their command is used (:class:`Command`).
"""
