// The page's sources that need no browser: texts of both languages, trees of messages, pieces of texts.
//     node tests/web/test_sources.mjs          ends with "N passed, N failed"
import {readdirSync, readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {History} from '../../apps/web/source/history.js';
import {piecesOf} from '../../apps/web/source/pieces.js';
import {textNames} from '../../apps/web/source/texts.js';
import {Conversation, newId, titleOf, toApi} from '../../apps/web/source/tree.js';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../apps/web');

function expect(condition, ...shown) {
    if (!condition) throw new Error(shown.map(item => JSON.stringify(item)).join(' | '));
}

const ids = messages => messages.map(message => message.text).join(' ');

const cases = {
    languages_say_the_same() {
        expect(JSON.stringify(textNames.en) === JSON.stringify(textNames.zh), textNames.en.filter(name => !textNames.zh.includes(name)), textNames.zh.filter(name => !textNames.en.includes(name)));
        const sources = [...readdirSync(join(web, 'source')).map(name => join('source', name)), 'page.html'].map(name => readFileSync(join(web, name), 'utf8')).join('\n');
        const used = new Set([...sources.matchAll(/\bt\('(\w+)'/g), ...sources.matchAll(/data-(?:t|label|placeholder)="(\w+)"/g)].map(found => found[1]));
        for (const card of ['first', 'speed', 'cached']) used.add(card); // account.js has them in a list
        expect([...used].every(name => textNames.en.includes(name)), 'without a text', [...used].filter(name => !textNames.en.includes(name)));
        expect(textNames.en.every(name => used.has(name)), 'not used', textNames.en.filter(name => !used.has(name)));
    },

    pieces_make_the_text_again() {
        for (const text of ['', 'short', 'a line\nand a longer line\n\nend', '界'.repeat(50), '🫨'.repeat(50), 'x🫨\n'.repeat(20)]) {
            const pieces = piecesOf(text, 7);
            expect(pieces.join('') === text && pieces.every(piece => piece.length <= 7 && !/[\uD800-\uDBFF]$/.test(piece)), text, pieces);
        }
        expect(piecesOf('x'.repeat(600000)).length === 3);
    },

    branches() {
        const chat = new Conversation();
        const a = chat.add(null, 'user', 'a'), b = chat.add(a.id, 'assistant', 'b'), c = chat.add(b.id, 'user', 'c');
        const other = chat.add(a.id, 'assistant', 'other'), again = chat.add(null, 'user', 'again');
        expect(ids(chat.path()) === 'again', ids(chat.path()));
        chat.show(a.id); // its newest branch
        expect(ids(chat.path()) === 'a other', ids(chat.path()));
        chat.show(b.id);
        expect(ids(chat.path()) === 'a b c' && chat.leaf === c.id, ids(chat.path()));
        expect(ids(chat.siblings(b)) === 'b other' && ids(chat.siblings(a)) === 'a again' && ids(chat.siblings(again)) === 'a again');
        chat.show(other.id);
        chat.discard(other.id);
        expect(chat.leaf === a.id && ids(chat.siblings(b)) === 'b');
    },

    reads_what_it_wrote() {
        const chat = new Conversation({id: 'x', title: 't', leaf: 'gone', settings: {system: 's'}, messages: [
            {id: 'a', parent: null, role: 'user', text: 'a'}, {id: 'b', parent: 'a', role: 'assistant', text: 'b', more: null}]});
        expect(chat.leaf === 'b' && chat.settings.system === 's' && chat.settings.temperature === 0.7, chat.leaf, chat.settings);
        expect(new Conversation().messages.size === 0 && new Conversation({id: 'e', messages: []}).path().length === 0);
        const circle = new Conversation({id: 'y', messages: [{id: 'a', parent: null, role: 'user', text: 'a'}, {id: 'b', parent: 'gone', role: 'user', text: 'b'}]});
        expect(ids(circle.path()) === 'b', ids(circle.path()));
    },

    as_the_api_takes_them() {
        const chat = new Conversation();
        const user = chat.add(null, 'user', 'ask', {documents: [{name: 'n.txt', text: 'body', tokens: 1}]});
        const reply = chat.add(user.id, 'assistant', '', {calls: [{id: 'c1', name: 'f', arguments: '{}'}], reasoning: 'hidden'});
        chat.add(reply.id, 'tool', 'done', {call: 'c1'});
        const expected = [{role: 'system', content: 'sys'}, {role: 'user', content: 'n.txt:\n\nbody\n\n---\n\nask'},
            {role: 'assistant', content: '', tool_calls: [{id: 'c1', type: 'function', function: {name: 'f', arguments: '{}'}}]},
            {role: 'tool', content: 'done', tool_call_id: 'c1'}];
        expect(JSON.stringify(toApi(chat.path(), 'sys')) === JSON.stringify(expected), toApi(chat.path(), 'sys'));
        expect(toApi(chat.path(), '  ')[0].role === 'user', 'a blank system prompt');
    },

    /** A Chinese character has three bytes, and the server counts bytes. */
    async an_import_is_sent_in_parts() {
        const sizes = [], conversations = Array.from({length: 8}, (_, i) => ({id: `c${i}`, messages: [{id: 'm', parent: null, role: 'user', text: '界'.repeat(700000)}]}));
        globalThis.sessionStorage = {getItem: () => null};
        globalThis.fetch = async (path, {body}) => {
            sizes.push(Buffer.byteLength(body));
            return new Response(JSON.stringify({conversations: JSON.parse(body).conversations.length, added: 1}));
        };
        const sums = await new History(() => {}).importAll({format: 'pith-conversations', version: 1, conversations});
        expect(sums.conversations === 8 && sums.added === sizes.length, sums);
        expect(sizes.length > 1 && sizes.every(size => size < 7 << 20), sizes);
    },

    small_things() {
        expect(titleOf('  one\ntwo') === 'one' && titleOf('x'.repeat(100)).length === 60, titleOf('x'.repeat(100)));
        const made = new Set(Array.from({length: 2000}, newId));
        expect(made.size === 2000 && [...made].every(id => /^[a-z0-9]{24}$/.test(id)));
    },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
    try {
        await run();
        console.log(`ok      ${name}`);
    } catch (error) {
        failed++;
        console.log(`FAILED  ${name}: ${error.message}`);
    }
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
