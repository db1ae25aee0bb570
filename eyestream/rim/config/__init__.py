"""The configuration: strict TOML, read once and whole, into frozen settings."""

from eyestream.rim.config.reading import load, load_login, read_tables
from eyestream.rim.config.tables import (
    AddedTable,
    BrokerSettings,
    BudgetSettings,
    ControlSettings,
    DeviceEntry,
    LimitSettings,
    LoginSettings,
    LogSettings,
    MetricsSettings,
    PrivacySettings,
    Settings,
    SidecarSettings,
    SourceEntry,
    StreamBudgetSettings,
    StreamSettings,
    WearerBudgetSettings,
)

__all__ = [
    "AddedTable",
    "BrokerSettings",
    "BudgetSettings",
    "ControlSettings",
    "DeviceEntry",
    "LimitSettings",
    "LogSettings",
    "LoginSettings",
    "MetricsSettings",
    "PrivacySettings",
    "Settings",
    "SidecarSettings",
    "SourceEntry",
    "StreamBudgetSettings",
    "StreamSettings",
    "WearerBudgetSettings",
    "load",
    "load_login",
    "read_tables",
]
