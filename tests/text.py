"""Text that breaks splitters, as hypothesis strategies."""

from hypothesis import strategies as st

_PIECES = [
    *("word", "Berlin", "x", "supercalifragilistic", "naïve", "don't", "##ing", "ß", "İ", "ﬁ", "½", "Ǆ", "𝔘"),
    *(" ", "  ", "\n", "\r\n", "\r", "\n\n", "\t", "\u00a0", "\u2028", "\u3000", "\x0c"),
    *(". ", "! ", "? ", "。", "！", "…", "—", "Dr. ", "e.g. ", "3.14", "https://a.b/c?d=e.f "),
    *("(", ") ", "“", "”", "「", "」"),
    *("é", "e\u0301", "\u0301", "n\u0303", "aa\u0308\u0304\u0331", "क्षि", "की", "ก็", "น้ำ", "ﷺ"),
    *("한국", "\u1112\u1161\u11ab", "山上下雪了", "もう帰る", "龘"),
    *("🦊", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "🇫🇷", "\U0001f1e9", "👍🏽"),
    *("\u200b", "\u200d", "\ufeff", "\x00", "\u0600", "\ufffd", "\u202e"),
    *("[SEP]", "[CLS]", "[MASK]", "<|endoftext|>", "</s>", "<s>"),
]

nasty_text = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join) | st.text(max_size=60)
