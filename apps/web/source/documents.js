// Text files that are asked about: read, checked, counted in tokens.
import {$, iconButton, make} from './elements.js';
import {piecesOf} from './pieces.js';
import {getJson, postJson} from './server.js';
import {t} from './texts.js';
import {toApi} from './tree.js';

const MOST_BYTES = 4 << 20, LEAST_ANSWER = 64; // tokens that an answer needs at least

/** The documents of the message that is being written. */
export class Documents {
    constructor() {
        this.items = []; // {name, text, tokens}
    }

    take() {
        const items = this.items;
        this.items = [];
        this.show();
        return items;
    }

    show() {
        const list = $('documents');
        list.hidden = this.items.length === 0;
        list.replaceChildren(...this.items.map(item => make('li', {}, make('span', {}, item.name),
            make('span', {className: 'small'}, t('tokens', item.tokens)), iconButton('close', t('removeDocument', item.name), () => {
                this.items = this.items.filter(other => other !== item);
                this.show();
                $('input').focus();
            }))));
    }

    /** Adds the file if its tokens fit beside what is there; throws an Error with a sentence. */
    async add(file, conversation) {
        const {model} = conversation.settings;
        if (file.size > MOST_BYTES) throw new Error(t('tooLarge', file.name, (file.size / 1e6).toFixed(1)));
        const text = await readText(file);
        const tokens = await countTokens(text, await counterOf(model));
        const {n, limit} = await countChat(conversation, conversation.leaf, this.items, '');
        const free = Math.max(0, limit - n - LEAST_ANSWER);
        if (tokens > free) throw new Error(t('tooLong', file.name, tokens, free, limit));
        this.items.push({name: file.name, text, tokens});
        this.show();
    }
}

async function readText(file) {
    try {
        const text = new TextDecoder('utf-8', {fatal: true}).decode(await file.arrayBuffer());
        if (!text.includes('\0')) return text.replaceAll('\r\n', '\n');
    } catch {
        // told below
    }
    throw new Error(t('notText', file.name));
}

const infoOf = model => getJson(`/v1/models/${encodeURIComponent(model)}`);

/** Whose tokens count: an upstream's are counted by the first model here, roughly, and its limit is its own matter (undefined). */
async function counterOf(model) {
    return (await infoOf(model)).status === 'upstream' ? undefined : model;
}

async function countTokens(text, model, more = {}) {
    let n = 0;
    for (const content of piecesOf(text)) n += (await postJson('/tokenize', {model, content, ...more})).tokens.length;
    return n;
}

/** Tokens of the chat with these documents and this text added after `parent`, and what the model takes: {n, limit}. */
async function countChat(conversation, parent, documents, text) {
    const {model, system} = conversation.settings;
    const counter = await counterOf(model);
    const message = {role: 'user', text, more: {documents}};
    const messages = toApi([...conversation.path(parent), message], system);
    const {prompt} = await postJson('/apply-template', {model: counter, messages});
    const n = await countTokens(prompt, counter, {parse_special: true});
    return {n, limit: counter && (await infoOf(counter)).meta?.n_ctx || Infinity}; // of a loaded model: counting loads it
}

/** Throws an Error with a sentence when a message with documents, said after `parent`, leaves no room for an answer. */
export async function checkRoom(conversation, parent, documents, text) {
    const {n, limit} = await countChat(conversation, parent, documents, text);
    if (n + LEAST_ANSWER > limit) throw new Error(t('tooLongAll', n, limit));
}
