// The list of conversations, or of what a search found; on a phone it is drawn over the page.
import {$, iconButton, make} from './elements.js';
import {t} from './texts.js';

const WAIT_MS = 200; // after a key, before the server is asked

export class Sidebar {
    /** act: {open(id, message), remove(entry)} */
    constructor(history, act) {
        this.history = history;
        this.act = act;
        this.current = '';
        this.turn = 0; // of questions: a late answer to an old one is dropped
        $('search').addEventListener('input', () => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.refresh(), WAIT_MS);
        });
        $('menu').addEventListener('click', () => this.setOpen(true));
        $('shade').addEventListener('click', () => this.setOpen(false));
        $('side').addEventListener('keydown', event => {
            if (event.key === 'Escape' && this.isOverlay && document.body.classList.contains('side-open')) this.setOpen(false);
        });
        this.narrow = matchMedia('(max-width: 760px)');
        this.narrow.addEventListener('change', () => this.setOpen(false));
        this.setOpen(false);
    }

    get isOverlay() {
        return this.narrow.matches;
    }

    setOpen(isOpen) {
        const wasOpen = document.body.classList.contains('side-open');
        document.body.classList.toggle('side-open', isOpen);
        $('shade').hidden = !isOpen || !this.isOverlay;
        $('side').inert = this.isOverlay && !isOpen;
        $('main').inert = this.isOverlay && isOpen;
        $('menu').setAttribute('aria-expanded', String(isOpen));
        if (isOpen) $('new').focus();
        else if (wasOpen && this.isOverlay) $('menu').focus();
    }

    async refresh() {
        const query = $('search').value.trim(), turn = ++this.turn;
        try {
            const found = query ? await this.history.search(query) : await this.history.list();
            if (turn === this.turn) query ? this.showHits(found) : this.showList(found);
        } catch (error) {
            if (turn === this.turn) this.show([], error.message);
        }
    }

    show(items, note) {
        const list = make('ul', {}, ...items);
        $('list').replaceChildren(...(items.length ? [list] : []), ...(note ? [make('p', {className: 'small'}, note)] : []));
    }

    link(id, title, note, message) {
        const link = make('a', {href: `#${id}`, on: {click: event => {
            event.preventDefault();
            this.act.open(id, message);
        }}}, make('span', {}, title || t('untitled')), note ? make('span', {className: 'small'}, note) : null);
        if (id === this.current) link.setAttribute('aria-current', 'page');
        return link;
    }

    showList({conversations, more}) {
        const items = conversations.map(entry => make('li', {}, this.link(entry.id, entry.title),
            iconButton('bin', t('removeOne', entry.title || t('untitled')), () => this.act.remove(entry))));
        this.show(items, more > 0 ? t('moreChats', more) : items.length || !this.history.isKept ? '' : t('noneYet'));
    }

    showHits(hits) {
        this.show(hits.map(hit => make('li', {}, this.link(hit.conversation, hit.title, hit.message ? hit.text : '', hit.message))),
            hits.length ? '' : t('nothingFound'));
    }
}
