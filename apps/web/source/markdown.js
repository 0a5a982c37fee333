// Markdown of a reply as elements that can do no harm.
// HTML in a reply is shown as the text that it is; images become links, since nothing is loaded from elsewhere; what marked makes goes
// through DOMPurify with a short list of elements. Very long texts, and those that marked cannot take, are shown as they are: its time grows
// with the square of a paragraph's length (60 KB of "a*" take 2.6 s), so texts are cut into blocks and long blocks are left plain.
import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import {Marked} from 'marked';
import {copyText, iconButton, make} from './elements.js';
import {t} from './texts.js';

const MOST_CHARACTERS = 200000, MOST_ELEMENTS = 20000, MOST_IN_BLOCK = 20000, MOST_HIGHLIGHTED = 20000;

for (const [name, grammar] of Object.entries({bash, c, cpp, css, diff, go, java, javascript, json, python, rust, sql, xml, yaml}))
    hljs.registerLanguage(name, grammar);

const escape = text => text.replace(/[&<>"]/g, sign => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[sign]);

function code({text, lang}) {
    const name = (lang || '').match(/^[\w+#-]*/)[0].toLowerCase();
    const known = hljs.getLanguage(name) && text.length <= MOST_HIGHLIGHTED;
    const body = known ? hljs.highlight(text, {language: name, ignoreIllegals: true}).value : escape(text);
    return `<pre><code class="language-${escape(name)}">${body}\n</code></pre>`;
}

const marked = new Marked({
    gfm: true,
    breaks: true,
    renderer: {
        code,
        html: ({text}) => escape(text),
        image: ({href, text}) => `<a href="${escape(href)}">${t('image')}: ${escape(text || href)}</a>`,
        checkbox: ({checked}) => (checked ? '☑ ' : '☐ '),
    },
});

const allowed = {
    ALLOWED_TAGS: ['a', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li', 'ol', 'p', 'pre', 'span', 'strong',
        'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'],
    ALLOWED_ATTR: ['href', 'class', 'start', 'align', 'title'],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
};

DOMPurify.addHook('afterSanitizeAttributes', element => {
    if (element.tagName === 'A' && element.hasAttribute('href')) {
        element.setAttribute('target', '_blank');
        element.setAttribute('rel', 'noopener noreferrer nofollow');
    }
    const names = [...element.classList].filter(name => /^(hljs|language)-[\w+#-]*$/.test(name) || name.endsWith('_'));
    if (element.hasAttribute('class')) element.setAttribute('class', names.join(' '));
});

function plain(text, note) {
    const fragment = document.createDocumentFragment();
    if (note) fragment.append(make('p', {className: 'small'}, note));
    fragment.append(make('pre', {className: 'plain'}, text));
    return fragment;
}

/** Name of the language and a button to copy, over each block; tables get a place to scroll in. */
function furnish(fragment) {
    for (const block of fragment.querySelectorAll('pre')) {
        const body = block.firstElementChild;
        const name = (body?.className.match(/language-([\w+#-]+)/) || [])[1] || '';
        const button = iconButton('copy', t('copy'), () => copyText(body.textContent));
        const frame = make('div', {className: 'block'}, make('div', {className: 'bar'}, make('span', {}, name), button));
        block.replaceWith(frame);
        block.tabIndex = 0;
        frame.append(block);
    }
    for (const table of fragment.querySelectorAll('table')) {
        const frame = make('div', {className: 'scroll', tabIndex: 0});
        table.replaceWith(frame);
        frame.append(table);
    }
}

const startsTable = /^[^\n]*\|[^\n]*\n\s*\|?[\s:|-]+\n/, startsFence = /^ {0,3}(```|~~~)/;

/** A fragment for one block of a text, whatever it is. */
function renderBlock(text) {
    if (text.length > MOST_IN_BLOCK && !startsFence.test(text) && !startsTable.test(text)) return plain(text, t('tooMuch'));
    let fragment;
    try {
        fragment = DOMPurify.sanitize(marked.parse(text), allowed);
    } catch {
        return plain(text, ''); // nested too deep
    }
    if (fragment.querySelectorAll('*').length > MOST_ELEMENTS) return plain(text, t('tooMuch'));
    furnish(fragment);
    return fragment;
}

/** Parts that can be rendered alone: cut at blank lines, but not inside of fences, nor before a line that may go on with a list. */
function cut(text) {
    const blocks = [];
    let block = '', fence = '', isBlank = false;
    for (const line of text.split('\n')) {
        if (isBlank && !fence && block.trim() && !/^(\s|[-*+] |\d+[.)] )/.test(line) && line.trim()) {
            blocks.push(block);
            block = '';
        }
        const mark = line.match(startsFence)?.[1];
        if (mark && !fence) fence = mark;
        else if (mark && mark === fence) fence = '';
        isBlank = !line.trim();
        block += `${line}\n`;
    }
    return [...blocks, block];
}

/** Shows the text in the element. What was shown before stays where it is the same, so that a growing text costs its last block alone. */
export function showMarkdown(element, text) {
    const blocks = text.length > MOST_CHARACTERS ? [] : cut(text);
    if (!blocks.length) {
        element.replaceChildren(plain(text, t('tooMuch')));
        return;
    }
    const old = [...element.children];
    blocks.forEach((source, i) => {
        if (old[i]?.source === source) return;
        const part = make('div', {className: 'part', source}, renderBlock(source));
        if (old[i]) old[i].replaceWith(part);
        else element.append(part);
    });
    for (const rest of old.slice(blocks.length)) rest.remove();
}
