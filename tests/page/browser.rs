//! A page in a browser: Debian's Chromium without a window.

use std::{fs, path::Path};

use serde_json::Value;

use crate::program::{Scratch, word};

/// Debian's package of the same name.
const BROWSER: &str = "chromium-headless-shell";

/// Inserted at the page's beginning: collects errors of the page's own script.
const FIRST: &str = "<script>window.probed = { errors: [] }; \
    addEventListener('error', e => window.probed.errors.push(String(e.message))); \
    addEventListener('securitypolicyviolation', e => window.probed.errors.push(e.blockedURI));</script>";

/// What a browser of this width, dark or light, finds in a page.
pub(super) fn look(scratch: &Scratch, page: &Path, width: u32, dark: bool) -> Value {
    let text = fs::read_to_string(page).unwrap();
    let probe = format!("<script>{}</script></body>", include_str!("probe.js"));
    let probed = text.replacen("<head>", &format!("<head>{FIRST}"), 1).replacen("</body>", &probe, 1);
    let file = scratch.file(&format!("probed-{width}.html"), &probed);
    let command = scratch.command(
        BROWSER,
        &[
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            &format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)),
            &format!("--user-data-dir={}", word(&scratch.path(&format!("browser-{width}")))),
            &format!("--window-size={width},900"),
            "--dump-dom",
            &format!("file://{}", word(&file)),
        ],
    );
    let ended = scratch.finish(command).with(0);
    let console: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    let verdict = ended.stdout.rsplit_once("<pre id=\"verdict\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (verdict, _) = verdict.unwrap_or_else(|| panic!("the page was not looked at\n{}", ended.stderr));
    let json = verdict.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"))
}
