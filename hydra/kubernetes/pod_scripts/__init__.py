"""Scripts that run inside Pods, in images without Hydra: standard library only, Python 3.8 or newer.

Hydra passes them as text (``python3 -c``); :mod:`hydra.kubernetes.pods` reads them.
"""
