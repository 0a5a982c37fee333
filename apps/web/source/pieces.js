// Long texts in pieces that the server cuts into tokens at once.
const PIECE = 250000; // UTF-16 units: below 1 MiB of UTF-8

/** The server cuts 1 MiB at once: longer texts go in pieces, cut behind lines, which may add a token a piece. */
export function piecesOf(text, most = PIECE) {
    const pieces = [];
    for (let at = 0; at < text.length;) {
        let end = Math.min(at + most, text.length);
        const line = text.lastIndexOf('\n', end - 1) + 1;
        if (end < text.length && line > at) end = line;
        else if (end < text.length && text.charCodeAt(end - 1) >> 10 === 0x36) end--; // not between two halves of a character
        pieces.push(text.slice(at, end));
        at = end;
    }
    return pieces;
}
