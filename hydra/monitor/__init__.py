"""Figures of a running command for Prometheus and OpenTelemetry: docs/metrics.md."""
