// SPDX-License-Identifier: MIT
//! Prints the context of this process, and whether the policy in force lets it read shadow files.
use std::process::ExitCode;

use tollgate_client::{Client, ClientError, protocol::Attribute};

fn told() -> Result<String, ClientError> {
    let mut daemon = Client::connect()?;
    let context = daemon.context(Attribute::Current, None)?.unwrap_or_default();
    let allowed = daemon.access(&context, "system_u:object_r:shadow_t:s0", "file")?;
    let verdict = if allowed.iter().any(|permission| permission == "read") { "allowed" } else { "denied" };
    Ok(format!("{context}\nfile read of shadow_t: {verdict}"))
}

fn main() -> ExitCode {
    match told() {
        Ok(text) => println!("{text}"),
        Err(error) => {
            eprintln!("context: {error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
