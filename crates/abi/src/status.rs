//! The status page, as `status.h` describes it; that header has the comments.
#![allow(
    missing_docs,
    non_camel_case_types,
    reason = "these are the C header's names; its comments are the documentation"
)]
#![allow(
    clippy::allow_attributes_without_reason,
    clippy::undocumented_unsafe_blocks,
    clippy::unreadable_literal,
    reason = "generated"
)]

include!(concat!(env!("OUT_DIR"), "/status.rs"));
