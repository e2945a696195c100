//! Draws box-drawing characters as shapes, because the glyphs of an unknown font would leave gaps
//! between cells.

/// The width of a cell in SVG units.
pub const WIDTH: u16 = 9;
/// The height of a cell in SVG units.
pub const HEIGHT: u16 = 18;

/// The strokes from the middle of a cell to the left, right, top and bottom: 0 is none, 1 is light,
/// 2 is heavy.
type Arms = (u8, u8, u8, u8);

/// The shape of a box-drawing or block character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Strokes of one weight (1 is light, 2 is heavy), as the data of an SVG path.
    Strokes(u8, String),
    /// A filled rectangle: x, y, width and height in SVG units.
    Block([String; 4]),
}

/// Returns the shape of a character in the cell at this column and row; None if the font draws the
/// character.
pub fn shape(symbol: &str, column: u16, row: u16) -> Option<Shape> {
    let mut chars = symbol.chars();
    let (c, None) = (chars.next()?, chars.next()) else {
        return None;
    };
    let (x, y) = (
        f32::from(column) * f32::from(WIDTH),
        f32::from(row) * f32::from(HEIGHT),
    );
    if let Some(arms) = arms(c) {
        return strokes(arms, x, y);
    }
    if let Some(path) = rounded(c, x, y) {
        return Some(Shape::Strokes(1, path));
    }
    let [left, top, width, height] = block(c)?;
    let (full_width, full_height) = (f32::from(WIDTH), f32::from(HEIGHT));
    Some(Shape::Block([
        number(x + left * full_width),
        number(y + top * full_height),
        number(width * full_width),
        number(height * full_height),
    ]))
}

fn arms(c: char) -> Option<Arms> {
    Some(match c {
        '─' => (1, 1, 0, 0),
        '━' => (2, 2, 0, 0),
        '│' => (0, 0, 1, 1),
        '┃' => (0, 0, 2, 2),
        '┌' => (0, 1, 0, 1),
        '┐' => (1, 0, 0, 1),
        '└' => (0, 1, 1, 0),
        '┘' => (1, 0, 1, 0),
        '├' => (0, 1, 1, 1),
        '┤' => (1, 0, 1, 1),
        '┬' => (1, 1, 0, 1),
        '┴' => (1, 1, 1, 0),
        '┼' => (1, 1, 1, 1),
        '╴' => (1, 0, 0, 0),
        '╵' => (0, 0, 1, 0),
        '╶' => (0, 1, 0, 0),
        '╷' => (0, 0, 0, 1),
        '┏' => (0, 2, 0, 2),
        '┓' => (2, 0, 0, 2),
        '┗' => (0, 2, 2, 0),
        '┛' => (2, 0, 2, 0),
        _ => return None,
    })
}

fn strokes((left, right, up, down): Arms, x: f32, y: f32) -> Option<Shape> {
    let (width, height) = (f32::from(WIDTH), f32::from(HEIGHT));
    let (middle, centre) = (x + width / 2.0, y + height / 2.0);
    let mut path = String::new();
    if left + right > 0 {
        let from = if left > 0 { x } else { middle };
        let to = if right > 0 { x + width } else { middle };
        path.push_str(&format!(
            "M{} {}H{}",
            number(from),
            number(centre),
            number(to)
        ));
    }
    if up + down > 0 {
        let from = if up > 0 { y } else { centre };
        let to = if down > 0 { y + height } else { centre };
        path.push_str(&format!(
            "M{} {}V{}",
            number(middle),
            number(from),
            number(to)
        ));
    }
    Some(Shape::Strokes(left.max(right).max(up).max(down), path))
}

fn rounded(c: char, x: f32, y: f32) -> Option<String> {
    let (width, height) = (f32::from(WIDTH), f32::from(HEIGHT));
    let (middle, centre) = (x + width / 2.0, y + height / 2.0);
    let (side, end) = match c {
        '╭' => (x + width, y + height),
        '╮' => (x, y + height),
        '╯' => (x, y),
        '╰' => (x + width, y),
        _ => return None,
    };
    Some(format!(
        "M{} {}Q{} {} {} {}",
        number(side),
        number(centre),
        number(middle),
        number(centre),
        number(middle),
        number(end)
    ))
}

/// Returns the rectangle that a block character fills: left, top, width and height as fractions of
/// the cell. None for other characters.
fn block(c: char) -> Option<[f32; 4]> {
    let eighth = |from: char| (c as u32 - from as u32 + 1) as f32 / 8.0;
    Some(match c {
        '█' => [0.0, 0.0, 1.0, 1.0],
        '▀' => [0.0, 0.0, 1.0, 0.5],
        '▐' => [0.5, 0.0, 0.5, 1.0],
        '▁'..='▇' => [0.0, 1.0 - eighth('▁'), 1.0, eighth('▁')],
        '▉'..='▏' => [0.0, 0.0, 1.0 - eighth('▉'), 1.0],
        _ => return None,
    })
}

/// Formats a number with at most two decimals and without trailing zeros.
pub fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_reach_the_edges_of_their_cells() {
        for (symbol, drawn) in [
            ("─", Some((1, "M9 27H18"))),
            ("┐", Some((1, "M9 27H13.5M13.5 27V36"))),
            ("┃", Some((2, "M13.5 18V36"))),
            ("╭", Some((1, "M18 27Q13.5 27 13.5 36"))),
            ("a", None),
            ("──", None),
            ("●", None),
        ] {
            let drawn = drawn.map(|(width, path)| Shape::Strokes(width, path.to_owned()));
            assert_eq!(shape(symbol, 1, 1), drawn, "{symbol}");
        }
    }

    #[test]
    fn blocks_fill_their_part() {
        for (symbol, filled) in [
            ("█", ["0", "0", "9", "18"]),
            ("▄", ["0", "9", "9", "9"]),
            ("▁", ["0", "15.75", "9", "2.25"]),
            ("▌", ["0", "0", "4.5", "18"]),
            ("▏", ["0", "0", "1.12", "18"]),
            ("▐", ["4.5", "0", "4.5", "18"]),
        ] {
            let filled = Shape::Block(filled.map(str::to_owned));
            assert_eq!(shape(symbol, 0, 0), Some(filled), "{symbol}");
        }
    }
}
