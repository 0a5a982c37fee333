// Talking to the server: requests with the key, errors as sentences, streams of events.
import {t} from './texts.js';

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

async function send(method, path, body, signal, keepalive) {
    const headers = {};
    const key = sessionStorage.getItem(keyName);
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    try {
        return await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, keepalive});
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new ServerError(t('noServer'), 0, 'no_server');
    }
}

async function errorOf(answer) {
    let told = null;
    try {
        told = (await answer.json()).error;
    } catch {
        // not JSON: the status says it
    }
    return new ServerError(told?.message || `${answer.status} ${answer.statusText}`, answer.status, told?.code);
}

let asking = null; // one question for all requests that need the key

/** The server's answer, which is good; asks for the key where one is wanted, unless it is quiet. keepalive: it outlives the page. */
export async function request(method, path, body, {signal, keepalive, quiet} = {}) {
    for (;;) {
        const used = sessionStorage.getItem(keyName);
        const answer = await send(method, path, body, signal, keepalive);
        if (answer.status !== 401) {
            if (answer.ok) return answer;
            throw await errorOf(answer);
        }
        if (!askKey || quiet) throw await errorOf(answer);
        if (sessionStorage.getItem(keyName) !== used) continue; // another request has just got one
        asking ||= askKey(used !== null).then(key => sessionStorage.setItem(keyName, key)).finally(() => (asking = null));
        await asking;
    }
}

export const getJson = async path => (await request('GET', path)).json();
export const postJson = async (path, body, options) => (await request('POST', path, body, options)).json();

/** Calls onEvent with each JSON event of the reply. Ends with the stream; throws when it breaks or tells an error. */
export async function stream(path, body, signal, onEvent) {
    const answer = await request('POST', path, body, {signal});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = '', ended = false;
    for (;;) {
        const {done, value} = await reader.read().catch(error => {
            if (error.name === 'AbortError') throw error;
            throw new ServerError(t('noServer'), 0, 'no_server');
        });
        if (done) break;
        held += value;
        const blocks = held.split('\n\n');
        held = blocks.pop();
        for (const block of blocks) {
            const data = block.startsWith('data: ') ? block.slice(6) : '';
            if (data === '[DONE]') ended = true;
            else if (data) tell(JSON.parse(data), onEvent);
        }
    }
    if (!ended) throw new ServerError(t('noServer'), 0, 'no_server');
}

function tell(event, onEvent) {
    if (event.error) throw new ServerError(event.error.message, 500, event.error.code);
    onEvent(event);
}
