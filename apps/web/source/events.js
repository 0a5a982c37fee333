// A stream of server-sent events, in whatever pieces it comes and with whatever line ends: the data of each event. Upstreams' streams pass
// the server as they are, so they may be written in any way that the standard allows.
export class EventReader {
    /** onData is called with the data of an event. */
    constructor(onData) {
        this.onData = onData;
        this.held = '';
        this.data = [];
    }

    feed(text) {
        const lines = (this.held + text).split(/\r\n|\n|\r(?!$)/); // a CR at the end may be half of an end
        this.held = lines.pop();
        for (const line of lines) this.take(line);
    }

    /** Nothing more comes. */
    end() {
        this.feed('\n');
    }

    take(line) {
        if (line.startsWith('data:')) this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
        if (line || !this.data.length) return;
        const data = this.data.join('\n');
        this.data = [];
        this.onData(data);
    }
}
