// Making a reply: the request, its stream, and what is kept of it meanwhile.
import {announce, Narrator} from './announce.js';
import {$, formatSpeed} from './elements.js';
import {stream} from './server.js';
import {t} from './texts.js';
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
            await stream('/v1/chat/completions', requestOf(this.conversation, this.parent), this.abort.signal, event => this.take(event));
        } catch (error) {
            if (error.name === 'AbortError') message.more.finish = 'stopped';
            else message.more.error = error.message;
        }
        delete message.more.isReasoned;
        const outcome = {stopped: t('stopped'), length: t('cut')}[message.more.finish] || message.more.error || t('ended');
        this.narrator.end(message.text, outcome);
        this.status('');
        this.on.end(message);
    }

    status(text) {
        $('state').textContent = text;
    }

    take(event) {
        const {more} = this.message;
        if (event.model) more.model = event.model;
        if (event.timings) more.timings = event.timings;
        if (event.prompt_progress && !this.n) this.status(t('reading', event.prompt_progress.processed, event.prompt_progress.total));
        const choice = event.choices?.[0];
        if (!choice) return;
        this.takeDelta(choice.delta);
        if (choice.finish_reason && choice.finish_reason !== 'stop') more.finish = choice.finish_reason;
        this.on.update();
    }

    takeDelta({content, reasoning_content: reasoning, tool_calls: calls}) {
        const {message} = this, {more} = message;
        if (!content && !reasoning && !calls) return;
        if (!this.n++) {
            this.first = performance.now();
            announce(t('began'));
        }
        if (reasoning) more.reasoning = (more.reasoning || '') + reasoning, more.isReasoned = false;
        if (content) message.text += content, delete more.isReasoned;
        for (const call of calls || []) this.takeCall(call);
        this.tellSpeed();
        this.narrator.feed(message.text);
        if (performance.now() - this.saved > SAVE_MS) {
            this.saved = performance.now();
            this.on.save(message);
        }
    }

    takeCall({index, id, function: {name, arguments: text}}) {
        const calls = (this.message.more.calls ||= []);
        const call = (calls[index] ||= {id: '', name: '', arguments: ''});
        call.id ||= id || '';
        call.name ||= name || '';
        call.arguments += text || '';
    }

    /** A part is a token, nearly always; the figures at the end are the server's. */
    tellSpeed() {
        const seconds = (performance.now() - this.first) / 1000;
        if (seconds > 0.3) this.status(t('writing', this.n, formatSpeed(this.n / seconds)));
        else if (this.n === 1) this.status(t('busy'));
    }
}
