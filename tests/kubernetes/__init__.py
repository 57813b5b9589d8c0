"""The project's own Kubernetes for its tests: control plane, kubelets, containers and Pod network, on this machine."""
