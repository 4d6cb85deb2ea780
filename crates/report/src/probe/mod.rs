//! A probe for its reader: a table for the terminal, one HTML page.

mod rows;
mod text;

pub use text::text;
