// The messages of a conversation as articles: text, reasoning, calls, branches and what can be done with each.
import {describeTimings} from './account.js';
import {$, copyText, icon, iconButton, make} from './elements.js';
import {showMarkdown} from './markdown.js';
import {facts} from './server.js';
import {endOf, language, t} from './texts.js';

const SHOWN = 200; // messages at once; earlier ones are asked for
const LEAST_MS = 60; // between two drawings of a reply that is being streamed

/** Calls of a reply: name and arguments. */
function callCard(call) {
    let shown = call.arguments;
    try {
        shown = JSON.stringify(JSON.parse(call.arguments), null, 2);
    } catch {
        // a call that was cut short is shown as it is
    }
    return make('div', {className: 'call'}, make('strong', {}, t('call', call.name)), make('pre', {tabIndex: 0}, shown));
}

function reasoningPart(more, isOpen) {
    const isDone = more.isReasoned !== false;
    return make('details', {className: 'reasoning', open: isOpen}, make('summary', {}, isDone ? t('reasoning') : t('thinking')),
        make('div', {className: 'plain'}, more.reasoning));
}

export class Messages {
    /** act: {edit(message, text), again(message), show(message), results(message, texts)} */
    constructor(act) {
        this.act = act;
        this.place = $('messages');
        this.log = $('log');
        this.isAtEnd = true;
        this.streaming = null; // {message, article}
        this.timer = 0;
        this.shown = new Map(); // texts of this conversation's replies as elements, by the message's id
        this.made = new Map(); // articles, by the message's id: {article, of: what they were made of}
        this.log.addEventListener('scroll', () => {
            this.isAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 60;
        });
    }

    /** All of it; articles of messages that are as before stay. */
    show(conversation, streamed = null) {
        if (this.conversation !== conversation) this.shown.clear(), this.made.clear(), this.most = SHOWN;
        this.conversation = conversation;
        const path = conversation.path(), hidden = Math.max(0, path.length - this.most);
        this.streaming = null;
        this.place.replaceChildren(...path.slice(hidden).map(message => this.article(message, message === streamed)));
        if (hidden) this.place.prepend(make('button', {type: 'button', className: 'wide quiet', on: {click: () => this.showEarlier()}}, t('earlierMessages', hidden)));
        if (!path.length) this.place.append(this.welcome());
        if (this.isAtEnd) this.toEnd();
    }

    /** What was looked at stays where it is. */
    showEarlier() {
        const below = this.log.scrollHeight - this.log.scrollTop;
        this.most += SHOWN;
        this.isAtEnd = false;
        this.show(this.conversation, this.streaming?.message);
        this.log.scrollTop = this.log.scrollHeight - below;
        (this.place.querySelector('button.wide') || this.log).focus({preventScroll: true});
    }

    /** The next show() has this message among those that it shows. */
    reveal(message) {
        const path = this.conversation.path();
        this.most = Math.max(this.most, path.length - path.findIndex(({id}) => id === message));
    }

    toEnd() {
        this.isAtEnd = true;
        this.log.scrollTop = this.log.scrollHeight;
    }

    welcome() {
        const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
        return make('div', {className: 'welcome'}, make('span', {className: 'mark', aria: {hidden: 'true'}}), make('h1', {}, t('welcome')),
            make('p', {}, isHere ? t('welcomeText') : t('welcomeFar', location.hostname)), facts.upstream ? make('p', {}, t('welcomeUpstream')) : null);
    }

    roleName(message) {
        const names = {user: t('you'), tool: t('tool'), system: t('systemRole')};
        return names[message.role] || message.more.model || t('model');
    }

    /** What an article shows; compared part by part. */
    partsOf(message, isStreamed) {
        const {more} = message, all = this.conversation.siblings(message), isLast = this.conversation.leaf === message.id;
        return [language(), isStreamed, message.text, more.reasoning, more.error, more.finish, more.timings, more.upstream, more.model, more.calls?.length, all.length,
            all.indexOf(message), Boolean(more.calls) && isLast && !this.conversation.children(message.id).length];
    }

    article(message, isStreamed) {
        const made = this.made.get(message.id), of = this.partsOf(message, isStreamed);
        if (made && !isStreamed && of.every((part, i) => part === made.of[i])) return made.article;
        const article = make('article', {className: message.role, aria: {label: this.roleName(message)}});
        article.dataset.id = message.id;
        this.fill(article, message, isStreamed);
        this.made.set(message.id, {article, of});
        if (isStreamed) this.streaming = {message, article};
        return article;
    }

    /** The element with a reply's text, up to date. */
    textOf(message) {
        if (!this.shown.has(message.id)) this.shown.set(message.id, make('div', {className: 'text'}));
        const element = this.shown.get(message.id);
        showMarkdown(element, message.text);
        return element;
    }

    fill(article, message, isStreamed) {
        const wasOpen = Boolean(article.querySelector('details')?.open);
        const {more} = message, parts = [];
        if (message.role !== 'user') parts.push(make('div', {className: 'who'}, this.roleName(message)));
        if (more.documents?.length) parts.push(make('ul', {className: 'papers'}, ...more.documents.map(document => make('li', {}, icon('clip'),
            make('span', {}, document.name), make('span', {className: 'small'}, t('tokens', document.tokens))))));
        if (more.reasoning) parts.push(reasoningPart(more, wasOpen));
        if (message.role === 'assistant') parts.push(this.textOf(message));
        else parts.push(make('div', {className: 'text plain'}, message.text));
        for (const call of more.calls || []) parts.push(callCard(call));
        if (more.error) parts.push(make('p', {className: 'wrong'}, more.error));
        if (isStreamed) article.setAttribute('aria-busy', 'true');
        else article.removeAttribute('aria-busy');
        if (!isStreamed) parts.push(this.footer(message), this.resultForm(message));
        article.replaceChildren(...parts.filter(Boolean));
    }

    footer(message) {
        const {more} = message;
        const foot = make('div', {className: 'foot'}, this.branches(message));
        if (message.role !== 'tool') foot.append(iconButton('edit', t('edit'), () => this.edit(message)));
        if (message.role === 'assistant') foot.append(iconButton('again', t('again'), () => this.act.again(message)));
        foot.append(iconButton('copy', t('copy'), () => copyText(message.text)));
        const told = [typeof more.upstream === 'string' && t('answeredBy', more.upstream), more.timings && describeTimings(more.timings), endOf(more.finish)].filter(Boolean);
        if (told.length) foot.append(make('span', {className: 'small figures'}, told.join(' · ')));
        return foot;
    }

    branches(message) {
        const all = this.conversation.siblings(message), at = all.indexOf(message);
        if (all.length < 2) return null;
        const step = (name, label, to) => {
            const button = iconButton(name, label, () => this.act.show(all[to]));
            button.disabled = !all[to];
            return button;
        };
        const place = make('span', {className: 'small', aria: {label: t('versionOf', at + 1, all.length)}}, `${at + 1}/${all.length}`);
        return make('span', {className: 'branches'}, step('left', t('earlier'), at - 1), place, step('right', t('later'), at + 1));
    }

    /** Fields for what the tools gave, after the calls that nothing follows yet. */
    resultForm(message) {
        const calls = message.more.calls || [];
        if (!calls.length || this.conversation.children(message.id).length || this.conversation.leaf !== message.id) return null;
        const fields = calls.map(call => make('textarea', {rows: 2, className: 'code', aria: {label: t('result', call.name)}, placeholder: t('result', call.name)}));
        return make('form', {className: 'results', on: {submit: event => {
            event.preventDefault();
            this.act.results(message, fields.map(field => field.value));
        }}}, ...fields, make('button', {className: 'strong'}, t('sendResults')));
    }

    edit(message) {
        const article = this.place.querySelector(`[data-id="${message.id}"]`);
        const field = make('textarea', {value: message.text, rows: Math.min(12, message.text.split('\n').length + 1), aria: {label: t('edit')}});
        const close = () => {
            this.fill(article, message, false);
            article.querySelector('button[title]')?.focus();
        };
        const form = make('form', {className: 'editor', on: {submit: event => {
            event.preventDefault();
            if (field.value.trim()) this.act.edit(message, field.value);
        }, keydown: event => {
            if (event.key === 'Escape') event.stopPropagation(), close();
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
        }}}, field, make('div', {className: 'end'}, make('button', {type: 'button', on: {click: close}}, t('cancel')),
            make('button', {className: 'strong'}, message.role === 'user' ? t('save') : t('keep'))));
        article.replaceChildren(form);
        this.made.delete(message.id);
        field.focus();
    }

    /** The streamed message has changed: it is drawn soon, seldom enough that drawing takes a small share of the time. */
    update() {
        if (this.timer || !this.streaming) return;
        this.timer = setTimeout(() => {
            this.timer = 0;
            if (!this.streaming) return;
            const began = performance.now();
            this.fill(this.streaming.article, this.streaming.message, true);
            if (this.isAtEnd) this.log.scrollTop = this.log.scrollHeight;
            this.cost = performance.now() - began;
        }, Math.max(LEAST_MS, 4 * (this.cost || 0)));
    }
}
