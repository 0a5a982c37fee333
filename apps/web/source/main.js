// The page: holds the conversation that is open and joins the parts.
//
//   composer -> Conversation (tree.js) -> Reply (reply.js) -> server.js -> /v1/chat/completions
//                    |                      |
//                 Messages (messages.js)  Account (account.js)
//                 History (history.js) -> /pith/...
//
// One reply at a time; what is on the page is what was said, whether it could be kept or not.
import {Account} from './account.js';
import {announce} from './announce.js';
import {ask, askForKey, openSettings} from './dialogs.js';
import {checkRoom, Documents} from './documents.js';
import {$, make, offerFile} from './elements.js';
import {History} from './history.js';
import {Messages} from './messages.js';
import {Reply} from './reply.js';
import {facts, getJson, onKeyWanted} from './server.js';
import {Sidebar} from './sidebar.js';
import {ofBrowser} from './storage.js';
import {language, preferredLanguage, setLanguage, t} from './texts.js';
import {Conversation, titleOf} from './tree.js';

let conversation = new Conversation();
let reply = null;
let opening = 0; // of clicks on conversations: the last one counts
let isSending = false; // from Enter until the message is there
const account = new Account();
const documents = new Documents();
const history = new History(notice);
const sidebar = new Sidebar(history, {open, remove});
const messages = new Messages({edit, again, show: showBranch, results});

/** A sentence over the messages; '' takes it away. */
function notice(text) {
    $('notice').textContent = text;
    $('notice').hidden = !text;
}

// ---- What is shown ----

function render() {
    messages.show(conversation, reply?.message);
    $('title').value = conversation.title || t('untitled');
    document.title = conversation.title ? `${conversation.title} · pith` : 'pith';
    $('send').hidden = Boolean(reply);
    $('stop').hidden = !reply;
    $('export-one').disabled = !conversation.messages.size;
    sidebar.current = conversation.id;
}

function showConversation(next) {
    conversation = next;
    if ([...$('model').options].some(option => option.value === conversation.settings.model)) $('model').value = conversation.settings.model;
    conversation.settings.model = $('model').value;
    $('adapter').value = conversation.settings.adapter;
    messages.isAtEnd = true;
    account.reset(conversation.path().map(message => message.more.timings).filter(Boolean));
    render();
    messages.toEnd();
    showKept();
}

/** Once a conversation is kept, the list has it, and the address names it, so that a reload finds it. */
function showKept() {
    const place = conversation.isKept ? `#${conversation.id}` : location.pathname;
    if (location.hash !== place) window.history.replaceState(null, '', place);
    sidebar.refresh();
}

function focusInput() {
    if (matchMedia('(hover: hover)').matches) $('input').focus();
}

// ---- Conversations ----

/** The conversation's id in the address; '' where there is none. */
const idInAddress = () => (location.hash.match(/^#([\w-]{1,64})$/) || [])[1] || '';

/** Whether it is open then. */
async function open(id, message) {
    const turn = ++opening;
    if (id !== conversation.id) {
        await stopReply();
        try {
            const next = new Conversation(await history.read(id));
            if (turn !== opening) return false;
            history.own(next);
            showConversation(next);
        } catch (error) {
            if (turn === opening) notice(error.message);
            return false;
        }
    }
    notice('');
    sidebar.setOpen(false);
    if (message && conversation.messages.has(message)) {
        conversation.show(message);
        messages.reveal(message);
        render();
        const article = document.querySelector(`[data-id="${message}"]`);
        messages.isAtEnd = false;
        article?.scrollIntoView({block: 'center'});
    }
    focusInput();
    return true;
}

async function startNew() {
    opening++;
    await stopReply();
    notice('');
    const {settings} = conversation;
    showConversation(new Conversation());
    conversation.settings = {...settings};
    sidebar.setOpen(false);
    $('input').focus();
}

async function remove(entry) {
    if (!await ask(t('removeAsk', entry.title || t('untitled')), t('remove'))) return;
    if (entry.id === conversation.id) await stopReply();
    if (!await history.remove(entry.id)) return;
    if (entry.id === conversation.id) await startNew();
    else sidebar.refresh();
}

async function saveHead() {
    if (!conversation.messages.size) return;
    await history.saveHead(conversation);
    sidebar.refresh();
}

// ---- Saying something ----

/** Adds the message and has it answered; false when it was not said. */
async function say(parent, text, papers) {
    if (papers.length) {
        const mine = conversation;
        $('state').textContent = t('checking');
        isSending = true;
        try {
            await checkRoom(mine, parent, papers, text);
        } finally {
            isSending = false;
            $('state').textContent = '';
        }
        if (mine !== conversation || reply) return false; // something else was begun meanwhile
    }
    if (!conversation.title) conversation.title = titleOf(text || papers[0].name);
    const message = conversation.add(parent, 'user', text, papers.length ? {documents: papers} : {});
    history.saveMessage(conversation, message).then(showKept);
    answer(message.id);
    return true;
}

function answer(parent) {
    const mine = conversation;
    reply = new Reply(conversation, parent, {
        update: () => conversation === mine && messages.update(),
        save: message => history.saveMessage(mine, message),
        end: message => endReply(mine, message),
    });
    messages.isAtEnd = true;
    render();
    messages.toEnd();
    reply.done = reply.run();
}

function endReply(mine, message) {
    reply = null;
    if (message.text || message.more.calls || message.more.reasoning) history.saveMessage(mine, message).then(showKept);
    if (mine !== conversation) return;
    if (message.more.timings) account.add(message.more.timings);
    render();
    refreshModels();
}

async function stopReply() {
    reply?.stop();
    await reply?.done;
}

async function submit() {
    const text = $('input').value.trim();
    if (reply || isSending || (!text && !documents.items.length)) return;
    const papers = documents.items;
    try {
        if (!await say(conversation.leaf, text, papers)) return;
    } catch (error) {
        notice(error.message);
        return;
    }
    notice('');
    documents.take();
    $('input').value = '';
    fitInput();
}

async function edit(message, text) {
    if (isSending) return;
    await stopReply();
    if (message.role !== 'user') {
        const changed = conversation.add(message.parent, message.role, text, {...message.more, timings: undefined});
        history.saveMessage(conversation, changed);
        render();
        return;
    }
    try {
        await say(message.parent, text, message.more.documents || []);
        focusInput();
    } catch (error) {
        notice(error.message);
    }
}

async function again(message) {
    await stopReply();
    if (message.more.error && !message.text) conversation.discard(message.id);
    answer(message.parent);
    focusInput();
}

function showBranch(message) {
    conversation.show(message.id);
    messages.isAtEnd = false;
    render();
    document.querySelector(`[data-id="${message.id}"] .branches button:enabled`)?.focus();
    announce(t('versionOf', conversation.siblings(message).indexOf(message) + 1, conversation.siblings(message).length));
    saveHead();
}

/** What the tools gave, one message a call; then the model goes on. */
async function results(message, texts) {
    let parent = message.id;
    message.more.calls.forEach((call, i) => {
        const result = conversation.add(parent, 'tool', texts[i], {call: call.id, name: call.name});
        history.saveMessage(conversation, result);
        parent = result.id;
    });
    answer(parent);
}

// ---- Models and adapters ----

function fillChoice(place, items, chosen) {
    const before = chosen || place.value;
    place.replaceChildren(...items.map(({value, text}) => make('option', {value}, text)));
    if (items.some(item => item.value === before)) place.value = before;
}

async function refreshModels() {
    try {
        const {data} = await getJson('/v1/models'), states = {absent: t('absent'), upstream: t('upstream')};
        fillChoice($('model'), data.map(({id, status}) => ({value: id, text: states[status] ? `${id} (${states[status]})` : id})), conversation.settings.model);
        conversation.settings.model = $('model').value;
    } catch (error) {
        notice(error.message);
    }
}

/** Values: '' as the server was started, 'none', or '=' and an adapter's name. */
function showAdapters(names) {
    const own = names.map(name => ({value: `=${name}`, text: name}));
    fillChoice($('adapter'), [{value: '', text: t('defaultAdapter')}, {value: 'none', text: t('noAdapter')}, ...own], conversation.settings.adapter);
}

async function refreshAdapters() {
    const {data} = await getJson('/v1/adapters').catch(() => ({data: []}));
    $('adapter').hidden = !data.length;
    showAdapters(data.map(({id}) => id));
}

// ---- Files ----

async function attach(files) {
    for (const file of files) {
        $('state').textContent = t('checking');
        try {
            await documents.add(file, conversation);
            notice('');
        } catch (error) {
            notice(error.message);
        }
        $('state').textContent = '';
    }
    $('input').focus();
}

const today = () => new Date().toISOString().slice(0, 10);

function exportOne() {
    const {id, title, settings, leaf} = conversation;
    const list = [...conversation.messages.values()];
    const created = list[0]?.created || 0;
    const whole = {format: 'pith-conversations', version: 1, conversations: [{id, title, leaf, settings, created, changed: created, messages: list}]};
    offerFile(`pith-${today()}-${id.slice(0, 6)}.json`, JSON.stringify(whole, null, 1));
}

async function exportAll() {
    try {
        offerFile(`pith-${today()}.json`, await history.exportAll());
    } catch (error) {
        notice(error.message);
    }
}

async function importFile(file) {
    try {
        const whole = JSON.parse(await file.text());
        if (whole.format !== 'pith-conversations' || !Array.isArray(whole.conversations)) throw new SyntaxError('another format');
        const {conversations, added} = await history.importAll(whole);
        notice(t('imported', conversations, added));
        sidebar.refresh();
    } catch (error) {
        notice(error instanceof SyntaxError ? t('importWrong', file.name) : error.message);
    }
}

// ---- The page itself ----

function fitInput() {
    const input = $('input');
    input.style.height = 'auto';
    input.style.height = `${Math.min(input.scrollHeight, innerHeight * 0.4)}px`;
}

function setTheme(name) {
    document.documentElement.dataset.theme = name;
    account.show();
}

function choose(name, value, apply) {
    ofBrowser.set(`pith.${name}`, value);
    apply(value);
}

function applyLanguage(name) {
    setLanguage(name);
    $('kept').textContent = history.isKept || !history.note ? '' : history.note;
    showAdapters([...$('adapter').options].filter(({value}) => value[0] === '=').map(({text}) => text));
    account.show();
    documents.show();
    render();
    sidebar.refresh();
}

function listen() {
    const press = (id, action) => $(id).addEventListener('click', action);
    press('new', startNew);
    press('stop', () => reply?.stop());
    press('open-account', () => account.toggle());
    press('open-settings', () => openSettings(conversation.settings, changed => {
        conversation.settings = changed;
        saveHead();
    }));
    press('export-one', exportOne);
    press('export-all', exportAll);
    press('import', () => $('import-file').click());
    press('attach', () => $('files').click());
    $('files').addEventListener('change', () => attach([...$('files').files]).finally(() => ($('files').value = '')));
    $('import-file').addEventListener('change', () => {
        const [file] = $('import-file').files;
        $('settings').close();
        if (file) importFile(file).finally(() => ($('import-file').value = ''));
    });
    $('composer').addEventListener('submit', event => {
        event.preventDefault();
        submit();
    });
    $('input').addEventListener('input', fitInput);
    $('input').addEventListener('keydown', event => {
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        submit();
    });
    $('title').addEventListener('change', () => {
        conversation.title = $('title').value.trim();
        render();
        saveHead();
    });
    $('model').addEventListener('change', () => {
        conversation.settings.model = $('model').value;
        saveHead();
    });
    $('adapter').addEventListener('change', () => {
        conversation.settings.adapter = $('adapter').value;
        saveHead();
    });
    $('theme').addEventListener('change', () => choose('theme', $('theme').value, setTheme));
    $('language').addEventListener('change', () => choose('language', $('language').value, applyLanguage));
    document.addEventListener('keydown', event => {
        if (event.key === 'Escape' && !document.querySelector('dialog[open]')) reply?.stop();
    });
    window.addEventListener('pagehide', () => reply && history.saveMessage(conversation, reply.message, true));
    window.addEventListener('hashchange', () => idInAddress() && open(idInAddress()));
    document.querySelector('.skip').addEventListener('click', event => {
        event.preventDefault(); // the address names conversations
        $('input').focus();
    });
    const drop = event => {
        if (![...event.dataTransfer.types].includes('Files')) return;
        event.preventDefault();
        if (event.type === 'drop') attach([...event.dataTransfer.files]);
    };
    document.addEventListener('dragover', drop);
    document.addEventListener('drop', drop);
}

async function start() {
    $('theme').value = ofBrowser.get('pith.theme') || 'auto';
    setTheme($('theme').value);
    $('language').value = ofBrowser.get('pith.language') || preferredLanguage();
    applyLanguage($('language').value);
    listen();
    onKeyWanted(askForKey);
    try {
        const {history: kept, upstream} = await history.open();
        facts.upstream = Boolean(upstream);
        history.note = kept.kept ? '' : `${t('notKept')} ${language() === 'en' ? kept.note : ''}`.trim();
        $('kept').textContent = history.note;
        refreshAdapters(); // may wait for the model to be loaded
        await refreshModels();
        const wanted = history.isKept && idInAddress();
        if (!wanted || !await open(wanted)) showConversation(conversation);
        focusInput();
    } catch (error) {
        notice(error.message);
    }
    document.body.dataset.ready = 'yes';
}

start();
