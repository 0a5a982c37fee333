// The history on the server. Where it keeps nothing, or fails, the page goes on with what it has in memory and says so.
import {getJson, postJson, request} from './server.js';
import {t} from './texts.js';

const pathOf = conversation => `/pith/conversations/${conversation.id}`;
const OUTLIVES = 20000; // characters of a body that may be sent while the page goes away; browsers take 64 KiB for all together
const IMPORT_BYTES = 6 << 20; // of one request, unless one conversation has more; the server takes 16 MiB

export class History {
    /** onTrouble(sentence) is told when something is not kept, onTrouble('') when it is again. */
    constructor(onTrouble) {
        this.onTrouble = onTrouble;
        this.isKept = false;
        this.saved = new WeakSet(); // messages that are there, in some state
        this.queue = Promise.resolve(); // writes in their order: parents before children
    }

    async open() {
        const status = await getJson('/pith/status');
        this.isKept = status.history.kept;
        return status;
    }

    async list() {
        return this.isKept ? getJson('/pith/conversations') : {conversations: [], more: 0};
    }

    read(id) {
        return getJson(`/pith/conversations/${id}`);
    }

    /** What was read from the server is there. */
    own(conversation) {
        for (const message of conversation.messages.values()) this.saved.add(message);
    }

    async search(query) {
        return this.isKept ? (await postJson('/pith/search', {query})).hits : [];
    }

    /** One write after the other; a failed one is told. The promise never fails and says whether it was kept. */
    write(method, path, body, leaves = false) {
        if (!this.isKept) return Promise.resolve(false);
        const keepalive = !body || JSON.stringify(body).length < OUTLIVES;
        const turn = async () => {
            try {
                await request(method, path, body, {keepalive, quiet: leaves});
                this.onTrouble('');
                return true;
            } catch (error) {
                const isGone = error.status === 404; // deleted in another tab
                if (isGone && method === 'DELETE') return true;
                this.onTrouble(isGone ? t('goneChat') : error.message);
                return false;
            }
        };
        if (leaves) return turn(); // the page goes away: nothing is waited for
        this.queue = this.queue.then(turn);
        return this.queue;
    }

    async saveHead(conversation) {
        const {title, leaf, settings} = conversation;
        const isKept = await this.write('PUT', pathOf(conversation), leaf ? {title, leaf, settings} : {title, settings});
        conversation.isKept ||= isKept;
        return isKept;
    }

    /** With whatever comes before it and could not be saved until now. */
    async saveMessage(conversation, message, leaves = false) {
        if (!conversation.isKept && !(await this.saveHead(conversation))) return false;
        for (const before of conversation.path(message.parent))
            if (!this.saved.has(before) && !(await this.saveOne(conversation, before, leaves))) return false;
        return this.saveOne(conversation, message, leaves);
    }

    async saveOne(conversation, message, leaves) {
        const {parent, role, text, more, created} = message;
        const isSaved = await this.write('PUT', `${pathOf(conversation)}/messages/${message.id}`, {parent, role, text, more, created}, leaves);
        if (isSaved) this.saved.add(message);
        return isSaved;
    }

    remove(id) {
        return this.write('DELETE', `/pith/conversations/${id}`);
    }

    async exportAll() {
        return (await request('GET', '/pith/export')).text();
    }

    /** Sends the conversations of an export, as many at once as fit into a request; the sums. */
    async importAll(whole) {
        const sums = {conversations: 0, added: 0};
        let some = [], bytes = 0;
        const flush = async () => {
            if (!some.length) return;
            const told = await postJson('/pith/import', {format: whole.format, version: whole.version, conversations: some});
            sums.conversations += told.conversations;
            sums.added += told.added;
            some = [];
            bytes = 0;
        };
        for (const conversation of whole.conversations) {
            const size = new Blob([JSON.stringify(conversation)]).size; // in UTF-8
            if (bytes + size > IMPORT_BYTES) await flush();
            some.push(conversation);
            bytes += size;
        }
        await flush();
        return sums;
    }
}
