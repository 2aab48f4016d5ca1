//! Built-in workloads: the measured code, small and alone
