// Making a reply: the request, its stream, and what is kept of it meanwhile.
import {announce, Narrator} from './announce.js';
import {$, formatSpeed} from './elements.js';
import {stream} from './server.js';
import {readDelta, readTimings} from './shapes.js';
import {endOf, t} from './texts.js';
import {toApi} from './tree.js';

const SAVE_MS = 5000; // between two savings of a reply that is being streamed

function requestOf(conversation, parent) {
    const {model, system, temperature, maxTokens, tools, adapter} = conversation.settings;
    const body = {messages: toApi(conversation.path(parent), system), stream: true, return_progress: true};
    if (model) body.model = model;
    if (temperature !== null && temperature !== '') body.temperature = Number(temperature);
    if (maxTokens) body.max_tokens = Number(maxTokens);
    if (tools.trim()) body.tools = JSON.parse(tools);
    if (adapter !== '') body.lora = adapter === 'none' ? [] : [{id: adapter.slice(1), scale: 1}];
    return body;
}

export class Reply {
    /** on: {update(), save(message), end(message)} */
    constructor(conversation, parent, on) {
        this.conversation = conversation;
        this.parent = parent;
        this.on = on;
        this.abort = new AbortController();
        this.message = conversation.add(parent, 'assistant', '', {model: conversation.settings.model});
        this.narrator = new Narrator();
        this.n = 0;
        this.saved = performance.now();
    }

    stop() {
        this.abort.abort();
    }

    async run() {
        const {message} = this;
        this.status(t('starting'));
        try {
            const head = this.conversation.settings.isPrivate ? {'X-Pith-Private': '1'} : {};
            await stream('/v1/chat/completions', requestOf(this.conversation, this.parent), {head, signal: this.abort.signal,
                onHead: headers => this.takeHead(headers), onEvent: event => this.take(event)});
        } catch (error) {
            if (error.name === 'AbortError') message.more.finish = 'stopped';
            else message.more.error = error.message;
        }
        delete message.more.isReasoned;
        const outcome = endOf(message.more.finish) || message.more.error || t('ended');
        this.narrator.end(message.text, outcome);
        this.status('');
        this.on.end(message);
    }

    status(text) {
        $('state').textContent = text;
    }

    /** Who answers, if it is not the model here. */
    takeHead(headers) {
        if (headers.get('X-Pith-Answered-By') === 'upstream') this.message.more.upstream = headers.get('X-Pith-Reason') || '';
    }

    take(event) {
        const {more} = this.message, timings = readTimings(event.timings), {total, processed} = event.prompt_progress || {};
        if (typeof event.model === 'string') more.model = event.model;
        if (timings) more.timings = timings;
        if (total >= processed && !this.n) this.status(t('reading', processed, total));
        const delta = readDelta(event);
        this.takeDelta(delta);
        if (delta.finish && delta.finish !== 'stop') more.finish = delta.finish;
        this.on.update();
    }

    takeDelta({content, reasoning, calls}) {
        const {message} = this, {more} = message;
        if (!content && !reasoning && !calls.length) return;
        if (!this.n++) {
            this.first = performance.now();
            announce(t('began'));
        }
        if (reasoning) more.reasoning = (more.reasoning || '') + reasoning, more.isReasoned = false;
        if (content) message.text += content, delete more.isReasoned;
        for (const call of calls) this.takeCall(call);
        this.tellSpeed();
        this.narrator.feed(message.text);
        if (performance.now() - this.saved > SAVE_MS) {
            this.saved = performance.now();
            this.on.save(message);
        }
    }

    takeCall({index, id, name, arguments: text}) {
        const calls = (this.message.more.calls ||= []);
        while (calls.length <= index) calls.push({id: '', name: '', arguments: ''});
        const call = calls[index];
        call.id ||= id;
        call.name ||= name;
        call.arguments += text;
    }

    /** A part is a token, nearly always; the figures at the end are the server's. */
    tellSpeed() {
        const seconds = (performance.now() - this.first) / 1000;
        if (seconds > 0.3) this.status(t('writing', this.n, formatSpeed(this.n / seconds)));
        else if (this.n === 1) this.status(t('busy'));
    }
}
