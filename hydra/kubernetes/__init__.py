"""The Kubernetes engine: groups are Pods; see docs/kubernetes.md."""
