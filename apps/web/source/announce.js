// What a screen reader is told. A streamed reply is told in whole sentences, some seconds apart: each change would flood the listener.
import {$} from './elements.js';

const PAUSE_MS = 4000, MOST = 600;

export function announce(text) {
    $('live').textContent = text;
}

/** Follows one reply: feed() with all of its text so far, end() once. */
export class Narrator {
    constructor() {
        this.told = 0;
        this.last = performance.now();
    }

    feed(text) {
        if (performance.now() - this.last < PAUSE_MS) return;
        const end = Math.max(...[...text.matchAll(/[.!?。！？\n](?=\s|$)|[。！？]/g)].map(found => found.index + 1), 0);
        if (end <= this.told) return;
        this.tell(text.slice(this.told, end));
        this.told = end;
    }

    end(text, outcome) {
        this.tell(text.slice(this.told), outcome);
        this.told = text.length;
    }

    /** A part that is too long to listen to is cut; how the reply ended is always told. */
    tell(part, outcome = '') {
        this.last = performance.now();
        const heard = part.length > MOST ? `${part.slice(0, MOST)} …` : part.trim();
        announce(`${heard} ${outcome}`.trim());
    }
}
