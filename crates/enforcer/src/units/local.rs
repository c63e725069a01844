//! Contexts of units that `tollgate unit` has set: lines `UNIT CONTEXT`.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{
    Setting,
    names::{BadName, Name},
};

/// Path of the file.
pub const FILE: &str = "/etc/tollgate/units";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// It cannot be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// A line has no valid name of a unit.
    #[error("{}, line {line}: {cause}", .path.display())]
    Name {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with the name.
        cause: BadName,
    },
    /// A line has no context.
    #[error("{}, line {line}: a line is a unit and a context: web.service system_u:system_r:web_t:s0", .path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

/// The settings in a file; none if it does not exist.
pub fn read(path: &Path) -> Result<BTreeMap<Name, Setting>, LocalError> {
    let text = match fs::read_to_string(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
        other => other.map_err(|cause| LocalError::Io { what: "read", path: path.to_owned(), cause })?,
    };
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| setting(line, number + 1, path)).collect()
}

fn setting(text: &str, line: usize, path: &Path) -> Result<(Name, Setting), LocalError> {
    let path = path.to_owned();
    let Some((name, context)) = text.split_once(char::is_whitespace) else {
        return Err(LocalError::Line { path, line });
    };
    let setting = Setting::of(context.trim(), &path);
    match name.parse() {
        Ok(name) => Ok((name, setting)),
        Err(cause) => Err(LocalError::Name { path, line, cause }),
    }
}

/// Sets or removes the context of a unit in a file. Returns whether that changed anything. Other lines, including
/// comments, stay.
pub fn set(path: &Path, unit: &Name, context: Option<&str>) -> Result<bool, LocalError> {
    let settings = read(path)?;
    let error = |what| {
        let path = path.to_owned();
        move |cause| LocalError::Io { what, path, cause }
    };
    let text = if settings.is_empty() && !path.exists() {
        String::new()
    } else {
        fs::read_to_string(path).map_err(error("read"))?
    };
    let is_of = |line: &&str| line.split_whitespace().next() != Some(unit.to_string().as_str());
    let mut lines: Vec<String> = text.lines().filter(is_of).map(str::to_owned).collect();
    lines.extend(context.map(|context| format!("{unit} {context}")));
    let after: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if after == text {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut fresh = NamedTempFile::new_in(folder).map_err(error("write"))?;
    io::Write::write_all(&mut fresh, after.as_bytes()).map_err(error("write"))?;
    fresh.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(error("write"))?;
    fresh.as_file().sync_all().map_err(error("write"))?;
    fresh.persist(path).map_err(|failure| error("write")(failure.error))?;
    Ok(true)
}
