// Talking to the server: requests with the key, errors as sentences, streams of events.
import {EventReader} from './events.js';
import {ofTab} from './storage.js';
import {t} from './texts.js';

/** What the server says of itself: whether it may ask another engine. */
export const facts = {upstream: false};

const keyName = 'pith.key';
let askKey = null; // async (wrong) => key

/** What is called when the server wants a key; it returns one. */
export function onKeyWanted(ask) {
    askKey = ask;
}

export class ServerError extends Error {
    constructor(message, status, code) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

async function send(method, path, body, {signal, keepalive, head}) {
    const headers = {...head};
    const key = ofTab.get(keyName);
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    try {
        return await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, keepalive});
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new ServerError(t('noServer'), 0, 'no_server');
    }
}

/** What an error says, in the shapes that servers give it; '' for others. */
function sentenceOf(error) {
    const said = typeof error === 'string' ? error : error?.message;
    return typeof said === 'string' ? said : '';
}

async function errorOf(answer) {
    let told = null;
    try {
        told = (await answer.json()).error;
    } catch {
        // not JSON: the status says it
    }
    return new ServerError(sentenceOf(told) || `${answer.status} ${answer.statusText}`, answer.status, told?.code);
}

let asking = null; // one question for all requests that need the key

/** The server's answer, which is good; asks for the key where one is wanted, unless it is quiet. keepalive: it outlives the page. head: headers. */
export async function request(method, path, body, {quiet, ...options} = {}) {
    for (;;) {
        const used = ofTab.get(keyName);
        const answer = await send(method, path, body, options);
        if (answer.status !== 401) {
            if (answer.ok) return answer;
            throw await errorOf(answer);
        }
        if (!askKey || quiet) throw await errorOf(answer);
        if (ofTab.get(keyName) !== used) continue; // another request has just got one
        asking ||= askKey(used !== null).then(key => ofTab.set(keyName, key)).finally(() => (asking = null));
        await asking;
    }
}

export const getJson = async path => (await request('GET', path)).json();
export const postJson = async (path, body, options) => (await request('POST', path, body, options)).json();

/** Calls onEvent with each JSON event of the reply, and before them onHead with its headers. Ends with the stream; throws when it breaks or tells an
 * error. */
export async function stream(path, body, {onEvent, onHead, ...options}) {
    const answer = await request('POST', path, body, options);
    onHead(answer.headers);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let ended = false;
    const events = new EventReader(data => {
        if (data === '[DONE]') ended = true;
        else if (!ended) tell(data, onEvent);
    });
    try {
        while (!ended) {
            const {done, value} = await reader.read().catch(error => {
                if (error.name === 'AbortError') throw error;
                throw new ServerError(t('noServer'), 0, 'no_server');
            });
            if (done) break;
            events.feed(value);
        }
        events.end();
        if (!ended) throw new ServerError(t('noServer'), 0, 'no_server');
    } finally {
        reader.cancel().catch(() => null); // whatever would come after the end or a fault
    }
}

function tell(data, onEvent) {
    let event;
    try {
        event = JSON.parse(data);
    } catch {
        throw new ServerError(t('notUnderstood'), 0, 'no_json');
    }
    if (event?.error) throw new ServerError(sentenceOf(event.error) || t('notUnderstood'), 500, event.error.code);
    if (typeof event === 'object' && event) onEvent(event);
}
