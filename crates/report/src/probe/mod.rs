//! A probe for its reader: a table for the terminal, one HTML page.

mod html;
mod rows;
mod text;

pub use html::html;
pub use text::text;
