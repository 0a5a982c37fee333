// A conversation: a tree of messages and the way through it that is looked at.
//     {id, title, settings, leaf, messages: [{id, parent, role, text, more, created}]}
// Invariant: a parent comes before its children in `messages`; children of one parent are branches in this order.
import {readMore, readSettings} from './shapes.js';

export function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), byte => byte.toString(36).padStart(2, '0')).join('');
}

export const defaultSettings = () => ({system: '', temperature: 0.7, maxTokens: null, tools: '', model: '', adapter: '', isPrivate: false});

export class Conversation {
    constructor(kept = {}) {
        this.id = kept.id || newId();
        this.title = kept.title || '';
        this.settings = readSettings(kept.settings, defaultSettings());
        this.leaf = kept.leaf || null;
        this.messages = new Map();
        this.branches = new Map(); // the children of each message, and of null
        this.isKept = Boolean(kept.id);
        for (const message of kept.messages || []) this.put({...message, more: readMore(message.more)});
        if (!this.messages.has(this.leaf)) this.leaf = [...this.messages.keys()].pop() || null;
    }

    add(parent, role, text, more = {}) {
        const message = {id: newId(), parent, role, text, more, created: Math.floor(Date.now() / 1000)};
        this.put(message);
        this.leaf = message.id;
        return message;
    }

    put(message) {
        this.messages.set(message.id, message);
        if (!this.branches.has(message.parent)) this.branches.set(message.parent, []);
        this.branches.get(message.parent).push(message);
    }

    children(parent) {
        return this.branches.get(parent) || [];
    }

    /** From the first message to the leaf, or to the message given. */
    path(end = this.leaf) {
        const path = [];
        for (let at = this.messages.get(end); at; at = this.messages.get(at.parent)) path.push(at);
        return path.reverse();
    }

    siblings(message) {
        return this.children(message.parent);
    }

    /** Goes on from this message to the end of its newest branch. */
    show(id) {
        for (let next = this.children(id); next.length; next = this.children(id)) id = next[next.length - 1].id;
        this.leaf = id;
    }

    discard(id) {
        const message = this.messages.get(id);
        this.messages.delete(id);
        this.branches.set(message.parent, this.siblings(message).filter(other => other !== message));
        if (this.leaf === id) this.leaf = message.parent;
    }
}

/** The beginning of a text as a title. */
export function titleOf(text) {
    const line = text.trim().split('\n')[0];
    return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

/** The text of a user's message with its documents before it, as the model gets it. */
export function withDocuments(message) {
    const documents = message.more.documents || [];
    return [...documents.map(document => `${document.name}:\n\n${document.text}`), message.text].join('\n\n---\n\n');
}

/** Messages as the API takes them. */
export function toApi(path, system) {
    const list = system.trim() ? [{role: 'system', content: system}] : [];
    for (const message of path) {
        if (message.role === 'user') list.push({role: 'user', content: withDocuments(message)});
        else if (message.role === 'tool') list.push({role: 'tool', content: message.text, tool_call_id: message.more.call || ''});
        else if (message.role === 'system') list.push({role: 'system', content: message.text});
        else list.push(assistant(message));
    }
    return list;
}

function assistant(message) {
    const calls = message.more.calls || [];
    const out = {role: 'assistant', content: message.text};
    if (calls.length)
        out.tool_calls = calls.map(call => ({id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments}}));
    return out;
}
