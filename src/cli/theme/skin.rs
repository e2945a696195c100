//! Converts a skin of k9s to a theme of bowline. The functions are pure.
//!
//! A skin has settings for the parts of k9s's screens; a theme has roles. Each role gets the colour of the setting
//! with the most similar meaning. If there is none, the role inherits its colour from bowline's theme `dark` or
//! `light`.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::names;
use crate::text;

/// The result of converting a skin.
#[derive(Debug)]
pub(super) struct Converted {
    /// The text of the theme, in TOML.
    pub(super) theme: String,
    /// One warning for each setting of the skin that was ignored, with the reason.
    pub(super) warnings: Vec<String>,
}

/// How a role of the theme gets its colours: the role, the settings for its foreground, the settings for its
/// background, and its attributes. Of the settings, the first one that the skin has is used.
type Rule = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const GROUND: &str = "body.bgColor";

#[rustfmt::skip]
const RULES: &[Rule] = &[
    ("text", &["body.fgColor"], &[GROUND], ""),
    ("muted", &["frame.status.completedColor"], &[], ""),
    ("title", &["frame.title.fgColor"], &["frame.title.bgColor"], "bold"),
    ("header", &["views.table.header.fgColor"], &["views.table.header.bgColor"], "bold"),
    ("breadcrumb", &["frame.crumbs.fgColor"], &["frame.crumbs.bgColor"], ""),
    ("selection", &["views.table.cursorFgColor"], &["views.table.cursorBgColor", "views.table.cursorColor"], ""),
    ("marked", &["views.table.markColor"], &[], "bold"),
    ("border", &["frame.border.fgColor"], &[], ""),
    ("key", &["frame.menu.keyColor"], &[], "bold"),
    ("key-description", &["frame.menu.fgColor"], &[], ""),
    ("good", &["frame.status.newColor"], &[], ""),
    ("progressing", &["frame.status.pendingColor", "frame.status.modifyColor"], &[], ""),
    ("degraded", &["frame.status.errorColor"], &[], "bold"),
    ("unknown", &["frame.status.completedColor"], &[], ""),
    ("behind", &["frame.status.modifyColor"], &[], ""),
    ("stale", &["frame.status.highlightColor"], &[], "bold"),
    ("warning", &["frame.status.highlightColor"], &[], ""),
    ("error", &["frame.status.errorColor"], &[], "bold"),
    ("match", &["frame.title.filterColor"], &[], "underline"),
    ("prompt", &["prompt.fgColor"], &["prompt.bgColor"], "bold"),
    ("added", &["frame.status.addColor"], &[], ""),
    ("removed", &["frame.status.errorColor"], &[], ""),
    ("changed", &["frame.status.modifyColor"], &[], ""),
    ("context-line", &["views.yaml.valueColor"], &[], ""),
    ("button", &["dialog.buttonFgColor"], &["dialog.buttonBgColor"], ""),
    ("button-focused", &["dialog.buttonFocusFgColor"], &["dialog.buttonFocusBgColor"], "bold"),
    ("production", &["body.logoColor"], &[], "bold"),
    ("plan-title", &["dialog.labelFgColor"], &[], "bold"),
    ("scrollbar", &["frame.border.focusColor"], &[], ""),
];

/// The settings of skins that themes do not need, so that they cause no warning. A name that ends with a dot stands
/// for all settings below it.
#[rustfmt::skip]
const UNUSED: &[&str] = &[
    "body.logoColorMsg", "body.logoColorInfo", "body.logoColorWarn", "body.logoColorError",
    "prompt.suggestColor", "prompt.border.", "info.", "help.", "dialog.fgColor", "dialog.bgColor",
    "dialog.fieldFgColor", "frame.border.bgColor", "frame.menu.numKeyColor", "frame.crumbs.activeColor",
    "frame.status.killColor", "frame.title.highlightColor", "frame.title.counterColor",
    "views.table.fgColor", "views.table.bgColor", "views.table.header.sorterColor", "views.xray.", "views.charts.",
    "views.yaml.keyColor", "views.yaml.colonColor", "views.picker.", "views.logs.",
];

/// Converts a skin to a theme. `file` is the name of its file. Returns None if the value is no skin.
pub(super) fn convert(file: &str, skin: &Value) -> Option<Converted> {
    let skin = skin.get("k9s")?.as_object()?;
    let mut places = Vec::new();
    flatten("", skin, &mut places);
    let mut warnings = Vec::new();
    let mut colours = Vec::new();
    for (place, value) in places {
        if UNUSED.iter().any(|known| covers(known, &place)) {
            continue;
        }
        let is_used = RULES
            .iter()
            .any(|(_, fg, bg, _)| fg.contains(&place.as_str()) || bg.contains(&place.as_str()));
        if !is_used {
            warnings.push(format!("k9s has no setting {place}; ignored"));
            continue;
        }
        match Colour::read(value) {
            Some(colour) => colours.push((place, colour)),
            None => warnings.push(format!(
                "{place}: {value} is not a colour; write \"#rrggbb\" or a CSS colour name"
            )),
        }
    }
    let theme = theme(file, &Skin { colours });
    Some(Converted { theme, warnings })
}

/// Adds the settings of a skin to `into`, each with its path, such as `body.fgColor`.
fn flatten<'v>(above: &str, map: &'v Map<String, Value>, into: &mut Vec<(String, &'v Value)>) {
    for (name, value) in map {
        let place = format!("{above}{name}");
        match value {
            Value::Object(below) => flatten(&format!("{place}."), below, into),
            _ => into.push((place, value)),
        }
    }
}

fn covers(known: &str, place: &str) -> bool {
    known == place || (known.ends_with('.') && place.starts_with(known))
}

/// A colour that a skin uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    /// The default colour of the user's terminal.
    Own,
    /// A colour by its red, green and blue parts, as 0xRRGGBB.
    Rgb(u32),
}

impl Colour {
    fn read(value: &Value) -> Option<Self> {
        let text = value.as_str()?.trim();
        if let Some(digits) = text.strip_prefix('#') {
            let hex = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok();
            return number.filter(|_| hex).map(Self::Rgb);
        }
        match text {
            "default" | "-" | "" => Some(Self::Own),
            name => names::colour(name).map(Self::Rgb),
        }
    }

    /// Returns whether dark text is easier to read on this colour than light text. None for the default colour of the
    /// terminal, because it is unknown.
    fn is_light(self) -> Option<bool> {
        let Self::Rgb(number) = self else {
            return None;
        };
        let [_, red, green, blue] = number.to_be_bytes().map(u32::from);
        Some(299 * red + 587 * green + 114 * blue > 127_500)
    }
}

struct Skin {
    colours: Vec<(String, Colour)>,
}

impl Skin {
    fn first(&self, places: &[&str]) -> Option<Colour> {
        let found = |place: &&str| self.colours.iter().find(|(known, _)| known == place);
        places.iter().find_map(found).map(|(_, colour)| *colour)
    }
}

fn theme(file: &str, skin: &Skin) -> String {
    let target_info = skin.first(&[GROUND]);
    let letters = skin.first(&["body.fgColor"]);
    let is_light = target_info
        .and_then(Colour::is_light)
        .or_else(|| letters.and_then(Colour::is_light).map(|light| !light));
    let inherits = if is_light == Some(true) {
        "light"
    } else {
        "dark"
    };
    let mut out = format!(
        "# Made from the k9s skin {}.\n\ninherits = \"{inherits}\"\n\n[style]\n",
        text::line(file)
    );
    for (role, fg, bg, attributes) in RULES {
        let written = |colour: Colour| match colour {
            Colour::Own => "default".to_owned(),
            Colour::Rgb(number) => format!("#{number:06x}"),
        };
        let fg = skin.first(fg).map(written);
        // If the role has the same background as the whole screen, it needs no background of its own.
        let bg = skin
            .first(bg)
            .filter(|colour| {
                *colour != Colour::Own && (*role == "text" || Some(*colour) != target_info)
            })
            .map(written);
        if fg.is_none() && bg.is_none() {
            continue;
        }
        let mut parts = Vec::new();
        parts.extend(fg.map(|fg| format!("fg = \"{fg}\"")));
        parts.extend(bg.map(|bg| format!("bg = \"{bg}\"")));
        if !attributes.is_empty() {
            parts.push(format!("{attributes} = true"));
        }
        let _ = writeln!(out, "{role} = {{ {} }}", parts.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(yaml: &str) -> Option<Converted> {
        let documents = bounded_yaml::documents("skin.yaml", yaml).unwrap();
        convert("skin.yaml", &documents[0].value)
    }

    #[test]
    fn a_skin_becomes_a_theme() {
        let Converted { theme, warnings } = converted(
            r##"
            target_info: &target_info "#1d2021"
            letters: &letters "#EBDBB2"
            k9s:
              body: {fgColor: *letters, bgColor: *target_info, logoColor: orange, logoColorMsg: white}
              frame:
                title: {fgColor: aqua, bgColor: *target_info, counterColor: papayawhip}
                status: {newColor: default, errorColor: "#fb4934", modifyColor: Gold}
              views:
                table: {cursorColor: steelblue, header: {fgColor: white, bgColor: navy}}
                charts: {defaultDialColors: [red, green], resourceColors: {cpu: [blue]}}
            "##,
        )
        .unwrap();
        assert_eq!(warnings, [""; 0]);
        assert_eq!(
            theme,
            r##"# Made from the k9s skin skin.yaml.

inherits = "dark"

[style]
text = { fg = "#ebdbb2", bg = "#1d2021" }
title = { fg = "#00ffff", bold = true }
header = { fg = "#ffffff", bg = "#000080", bold = true }
selection = { bg = "#4682b4" }
good = { fg = "default" }
progressing = { fg = "#ffd700" }
degraded = { fg = "#fb4934", bold = true }
behind = { fg = "#ffd700" }
error = { fg = "#fb4934", bold = true }
removed = { fg = "#fb4934" }
changed = { fg = "#ffd700" }
production = { fg = "#ffa500", bold = true }
"##
        );
    }

    #[test]
    fn what_is_not_understood_is_said_and_left_out() {
        let Converted { theme, warnings } = converted(
            "k9s:\n  body: {fgColor: octarine, bgColor: 7, glow: red}\n  views: {yaml: {colorColor: red}}\n  frame: red",
        )
        .unwrap();
        assert_eq!(
            warnings,
            [
                "body.bgColor: 7 is not a colour; write \"#rrggbb\" or a CSS colour name",
                "body.fgColor: \"octarine\" is not a colour; write \"#rrggbb\" or a CSS colour name",
                "k9s has no setting body.glow; ignored",
                "k9s has no setting frame; ignored",
                "k9s has no setting views.yaml.colorColor; ignored",
            ]
        );
        assert!(theme.ends_with("[style]\n"), "{theme}");
    }

    #[test]
    fn what_is_no_skin_is_none() {
        for text in ["body: {}", "[]", "k9s: 3", "'k9s'"] {
            assert!(converted(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_ground_decides_what_is_inherited() {
        for (body, expected) in [
            ("{bgColor: white}", "light"),
            ("{bgColor: black, fgColor: black}", "dark"),
            ("{bgColor: default, fgColor: black}", "light"),
            ("{bgColor: '-', fgColor: white}", "dark"),
            ("{}", "dark"),
        ] {
            let Converted { theme, .. } = converted(&format!("k9s: {{body: {body}}}")).unwrap();
            let inherits = format!("inherits = \"{expected}\"");
            assert!(theme.contains(&inherits), "{body}: {theme}");
        }
    }
}
