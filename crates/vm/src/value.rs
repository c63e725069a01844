//! Values of QEMU's options.

use std::path::Path;

/// A path as the value of an option: a comma is written twice (docs/system/qemu-manpage: "QEMU options").
pub(crate) fn of(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}
