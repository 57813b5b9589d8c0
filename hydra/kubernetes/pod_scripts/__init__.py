"""Scripts that run inside Pods, in images without Hydra: standard library only, Python 3.8 or newer.

They are passed as text (``python3 -c``); :mod:`hydra.kubernetes.pods` reads them.
"""
