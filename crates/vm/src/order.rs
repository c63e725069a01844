//! The host's order to the guest's agent: a file in the image, or a message to a machine that was saved.

use serde::{Deserialize, Serialize};

/// The work that the agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The command. If it is empty, the agent answers and powers off.
    pub(crate) argv: Vec<String>,
    /// Environment beside PATH and HOME.
    pub(crate) env: Vec<(String, String)>,
    /// Wait until the kernel's work after boot is over before the command starts.
    pub(crate) settle: bool,
    /// Paths of kernel modules to load, in this order.
    pub(crate) modules: Vec<String>,
    /// The command runs in the system on the first disk.
    pub(crate) system: Option<System>,
    /// When the command has succeeded, wait to be saved, and follow the next order.
    /// Written only if true: every byte of the image moves the guest's memory, and with it the figures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) save: bool,
    /// Wait for the network card before the command starts. Written only if true, as above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) wire: bool,
    /// The command's standard input is what the host sends. Written only if true, as above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stdin: bool,
}

/// The system on the first disk, in which the command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// The service's SELinux context, if SELinux runs. If there is none, the service manager chooses it.
    pub context: Option<String>,
    /// No service manager is started, and no service: the agent stays the guest's init, with the disk as its root. What the
    /// system has already is not replaced by files of the image. Written only if true, as above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
}
