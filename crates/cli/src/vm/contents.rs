//! What is put into a guest: files, kernel modules, the command's program.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use tollgate_vm::{Image, Kernel, image, modules};

#[derive(Debug, Args)]
pub(super) struct Contents {
    /// Put a file of this machine into the guest, with the libraries that it needs if it is a program and there is no --disk
    #[arg(long, value_name = "HOST[:GUEST]")]
    file: Vec<String>,
    /// Load a kernel module, and the modules that it needs, before the command starts
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
}

impl Contents {
    /// The guest's files with these drivers, and the command with its path in the guest. If the guest has a disk, both are
    /// for the system on it.
    pub(super) fn image(
        &self,
        kernel: &Kernel,
        drivers: &[&str],
        command: &[String],
        on_disk: bool,
    ) -> anyhow::Result<(Image, Vec<String>)> {
        let mut image = Image::with_agent()?;
        let mut argv = command.to_vec();
        if let Some(folder) = kernel.modules.as_ref().filter(|_| !drivers.is_empty()) {
            image.kernel_modules(modules::with_dependencies(folder, drivers)?);
        }
        if let Some(program) = argv.first_mut().filter(|_| !on_disk) {
            *program = add_program(&mut image, program)?;
        }
        add_modules(&mut image, kernel, &self.module)?;
        for file in &self.file {
            add_file(&mut image, file, on_disk)?;
        }
        Ok((image, argv))
    }
}

/// Kernel modules with those that they need. A module without a file may be built into the kernel.
fn add_modules(image: &mut Image, kernel: &Kernel, wanted: &[String]) -> anyhow::Result<()> {
    let names: Vec<String> = wanted.iter().map(|name| name.replace('-', "_")).collect();
    let found = match &kernel.modules {
        Some(folder) if !names.is_empty() => {
            modules::with_dependencies(folder, &names.iter().map(String::as_str).collect::<Vec<_>>())?
        }
        _ => Vec::new(),
    };
    if let Some(missing) = names.iter().find(|name| !found.iter().any(|(module, _)| module == *name)) {
        bail!(
            "--module {missing}: kernel {} has no file of such a module; leave it out if it is built in",
            kernel.release
        );
    }
    image.kernel_modules(found);
    Ok(())
}

/// Adds the file of an argument `HOST` or `HOST:GUEST`.
pub(crate) fn add_file(image: &mut Image, argument: &str, on_disk: bool) -> anyhow::Result<()> {
    let (host, to) = argument.split_once(':').unwrap_or((argument, argument));
    let host = PathBuf::from(host).canonicalize().with_context(|| format!("--file {argument}"))?;
    let to = if argument.contains(':') { to.to_string() } else { host.to_string_lossy().into_owned() };
    if on_disk {
        // The system there has libraries of its own.
        image.disk_file(&host, &to)?;
    } else {
        image.program(&host, &to, &[])?;
    }
    Ok(())
}

/// Copies the program named `word` and returns its path in the guest. A program that only busybox has is found by PATH.
pub(crate) fn add_program(image: &mut Image, word: &str) -> anyhow::Result<String> {
    let host = if word.contains('/') { Some(PathBuf::from(word)) } else { image::on_path(word) };
    match host {
        Some(host) if host.exists() => {
            let to = std::path::absolute(&host)?.to_string_lossy().into_owned();
            image.program(&host, &to, &[])?;
            Ok(to)
        }
        _ if image.holds(word) || image.holds(&format!("/bin/{word}")) => Ok(word.to_string()),
        _ => bail!("{word}: no such program on this machine, and busybox has no applet of this name"),
    }
}
