//! Figures as pixels, the same on every machine.

use crate::error::ReportError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::{Arc, LazyLock};

/// Pixels for each CSS pixel.
const SCALE: f32 = 2.0;

/// Part of DejaVu Sans (assets/fonts): fonts of the machine would make another picture of each.
static FONT: &[u8] = include_bytes!("../../../../assets/fonts/DejaVuSans.ttf");

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// An SVG of [`super::svg`] as PNG, at twice its size.
///
/// # Errors
/// Text that is no SVG, or of no size.
pub fn png(svg: &str) -> Result<Vec<u8>, ReportError> {
    let problem = |problem: String| ReportError::Picture(problem);
    let options =
        Options { font_family: "DejaVu Sans".to_owned(), fontdb: FONTS.clone(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| problem(error.to_string()))?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (side * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| problem(format!("a picture of {width} by {height} pixels is too large")))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| problem(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{samples, svg};

    #[test]
    fn pictures_are_twice_as_large_and_have_words_and_colours() {
        let figure = samples::bars();
        let bytes = png(&svg(&figure)).unwrap();
        let pixels = Pixmap::decode_png(&bytes).unwrap();
        assert_eq!(pixels.width(), 1440);
        assert!(pixels.height() > 500 && pixels.height() < 1200, "{}", pixels.height());
        let has = |color: (u8, u8, u8)| {
            pixels.pixels().iter().any(|pixel| (pixel.red(), pixel.green(), pixel.blue()) == color)
        };
        assert!(has((0xff, 0xff, 0xff)) && has((0x00, 0x72, 0xb2)), "ground and first series");
        // Without its words the picture is another one.
        let mute = svg(&figure).replace("<text", "<desc").replace("</text", "</desc");
        assert_ne!(png(&mute).unwrap(), bytes);
        assert_eq!(png(&svg(&figure)).unwrap(), bytes, "not the same twice");
    }

    #[test]
    fn what_is_no_picture_is_an_error() {
        let error = png("<svg").unwrap_err().to_string();
        assert!(error.contains("picture"), "{error}");
    }
}
