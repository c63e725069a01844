//! Writes the seeds of all targets into folders of their names, below the folder that is named.

use std::{fs, path::Path};

// What the coverage that is compiled into everything calls.
use libfuzzer_sys as _;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "seeds".into());
    for (target, seeds) in tollgate_fuzz::seeds::all() {
        let own = Path::new(&folder).join(target);
        fs::create_dir_all(&own)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(own.join(number.to_string()), seed)?;
        }
    }
    Ok(())
}
