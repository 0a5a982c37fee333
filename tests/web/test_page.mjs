// The page of `pith serve` in Chromium, against the real server with the default model. No case may make a request to another host, break
// the page's own policy or raise an error: openPage() watches over that for each.
//     node tests/web/test_page.mjs PITH_PROGRAM PACKAGES [WORD ...]    PACKAGES: folder for playwright-core; cases whose names have a WORD
// Ends with "N passed, N failed, N skipped". PITH_PAGE_PICTURES names a folder for pictures to look at.
import {existsSync, readFileSync, rmSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {hostileCases} from './hostile_cases.mjs';
import {eventStream, expect, findChromium, folder, loadPlaywright, madeUp, openPage, picture, replied, say, Server, Skip, writeText} from './page_tools.mjs';

const [program, packages, ...words] = [...process.argv.slice(2, 4).map(path => resolve(path)), ...process.argv.slice(4)];
const model = join(process.env.PITH_TEST_MODELS || '', 'smollm2-135m-q4_1.gguf');
let browser, server;

const texts = (page, role) => page.locator(`article.${role} > .text`).allInnerTexts();
const id = page => new URL(page.url()).hash.slice(1);

/** The conversation's id, once it is kept. */
async function keptId(page) {
    await page.waitForURL(/#./);
    return id(page);
}

/** Waits until the server has so many messages of the conversation. */
async function allKept(page, n) {
    const path = `/pith/conversations/${await keptId(page)}`;
    for (let i = 0; i < 200 && (await server.get(path)).messages.length < n; i++) await page.waitForTimeout(20);
}

/** The settings' dialog, changed and closed. */
async function settings(page, change) {
    await page.locator('#open-settings').click();
    await change(page);
    await page.locator('#settings-done').click();
}

const short = page => settings(page, () => page.locator('#max-tokens').fill('12'));

const cases = {
    async chat_and_reload() {
        const {page, close} = await openPage(browser, server);
        await short(page);
        await say(page, 'What is the capital of France?');
        await replied(page);
        expect((await texts(page, 'user'))[0] === 'What is the capital of France?', await texts(page, 'user'));
        const [answer] = await texts(page, 'assistant');
        expect(answer.length > 3, answer);
        expect(await page.locator('.figures').innerText().then(text => /to first token .*tokens\/s/i.test(text)), 'no figures');
        expect((await page.locator('#list a[aria-current]').innerText()).startsWith('What is the capital'), 'not in the list');
        await allKept(page, 2);
        await page.reload();
        await page.locator('article.assistant').waitFor();
        expect((await texts(page, 'assistant'))[0] === answer, 'after the reload', await texts(page, 'assistant'), answer);
        const kept = await server.get(`/pith/conversations/${await keptId(page)}`);
        expect(kept.messages.length === 2 && kept.messages[1].parent === kept.messages[0].id && kept.settings.maxTokens === 12, kept);
        await close();
    },

    async streams_and_stops() {
        const {page, close} = await openPage(browser, server);
        await page.evaluate(() => {
            window.lives = [];
            new MutationObserver(() => window.lives.push(document.getElementById('live').textContent)).observe(document.getElementById('live'), {childList: true});
        });
        await say(page, 'Write a very long story about a lighthouse, with many chapters.');
        const text = page.locator('article.assistant .text');
        const begun = Date.now();
        await text.filter({hasText: /\w{3}/}).waitFor({timeout: 30000});
        const first = (await text.innerText()).length;
        await page.waitForTimeout(700);
        expect((await text.innerText()).length > first, 'the text does not grow');
        expect(/tokens\/s/.test(await page.locator('#state').innerText()), 'no live speed');
        await page.locator('#stop').click();
        await replied(page);
        expect(await page.locator('.foot').getByText('Stopped.').isVisible(), 'it does not say that it was stopped');
        for (let i = 0; i < 50 && await server.metric('replies_running') > 0; i++) await page.waitForTimeout(20);
        expect(await server.metric('replies_running') === 0, 'the server goes on');
        const lives = await page.evaluate(() => window.lives);
        const most = 3 + Math.ceil((Date.now() - begun) / 4000); // the beginning, one in four seconds, the end
        expect(lives.length <= most && lives[0] === 'The reply begins.' && lives.at(-1).endsWith('Stopped.'), 'announcements', lives);
        const kept = await server.get(`/pith/conversations/${await keptId(page)}`);
        expect(kept.messages[1].more.finish === 'stopped' && kept.messages[1].text.length > 0, kept.messages[1]);
        await close();
    },

    async long_reply_tells_its_end() {
        const {page, close} = await openPage(browser, server);
        await madeUp(page, eventStream([`It goes on ${'and on '.repeat(500)}.`], {finish: 'length'}));
        await say(page, 'Write without end.');
        await replied(page);
        const told = await page.locator('#live').innerText(), ends = await page.locator('.foot').allInnerTexts();
        expect(told.length < 800 && /… .*limit/.test(told), 'the end is not told', told.slice(-200), ends);
        await close();
    },

    async reload_in_a_reply() {
        const {page, close} = await openPage(browser, server);
        await say(page, 'Write a very long story about a forest.');
        await page.locator('article.assistant .text').filter({hasText: /\w{3}/}).waitFor({timeout: 30000});
        await page.locator('#list a[aria-current]').waitFor();
        const seen = (await texts(page, 'assistant'))[0];
        await keptId(page);
        await page.reload();
        await page.locator('article.assistant').waitFor();
        expect((await texts(page, 'assistant'))[0].startsWith(seen.slice(0, 20)), 'what came is lost', await texts(page, 'assistant'), seen);
        for (let i = 0; i < 100 && await server.metric('replies_running') > 0; i++) await page.waitForTimeout(20);
        expect(await server.metric('replies_running') === 0, 'the server goes on');
        await close();
    },

    async edit_again_branches() {
        const {page, close} = await openPage(browser, server);
        await short(page);
        await say(page, 'Name a colour.');
        await replied(page);
        await page.getByRole('button', {name: 'Answer again'}).click();
        await replied(page);
        expect(await page.locator('article.assistant .branches').innerText() === '2/2', 'no second answer');
        await page.locator('article.user').getByRole('button', {name: 'Edit'}).click();
        await page.locator('.editor textarea').fill('Name an animal.');
        await page.getByRole('button', {name: 'Save and send'}).click();
        await replied(page);
        expect((await texts(page, 'user'))[0] === 'Name an animal.', await texts(page, 'user'));
        expect(await page.locator('article.assistant .branches').count() === 0, 'an answer of another question');
        await picture(page, 'branches');
        await page.locator('article.user').getByRole('button', {name: 'Earlier version'}).click();
        expect((await texts(page, 'user'))[0] === 'Name a colour.' && await page.locator('article.assistant .branches').innerText() === '2/2');
        await page.locator('article.assistant').getByRole('button', {name: 'Earlier version'}).click();
        expect(await page.locator('article.assistant .branches').innerText() === '1/2');
        const [shown] = await texts(page, 'assistant');
        await page.locator('#list a[aria-current]').waitFor();
        for (let i = 0; i < 50; i++) { // the choice of a branch is kept, too
            const kept = await server.get(`/pith/conversations/${await keptId(page)}`);
            if (kept.messages.find(m => m.id === kept.leaf)?.text.trim() === shown.trim()) break;
            await page.waitForTimeout(20);
        }
        await page.reload();
        await page.locator('article.assistant').waitFor();
        expect((await texts(page, 'assistant'))[0] === shown, await texts(page, 'assistant'), shown);
        expect((await server.get(`/pith/conversations/${await keptId(page)}`)).messages.length === 5, 'messages');
        await close();
    },

    async second_turn_has_the_first() {
        const {page, close} = await openPage(browser, server);
        const bodies = await madeUp(page, eventStream(['one']), eventStream(['two']));
        await settings(page, () => page.locator('#system').fill('Be brief.'));
        await say(page, 'first');
        await replied(page);
        await say(page, 'second\nline');
        await replied(page);
        expect(JSON.stringify(bodies[1].messages) === JSON.stringify([{role: 'system', content: 'Be brief.'}, {role: 'user', content: 'first'},
            {role: 'assistant', content: 'one'}, {role: 'user', content: 'second\nline'}]), bodies[1]);
        expect(bodies[1].model === 'smollm2-135m-q4_1' && bodies[1].temperature === 0.7 && bodies[1].stream === true, bodies[1]);
        await close();
    },

    async search_export_import_remove() {
        const {page, close} = await openPage(browser, server);
        await madeUp(page, eventStream(['The wombat digs.']));
        await say(page, 'Tell me of marsupials 世界');
        await replied(page);
        const mine = await keptId(page);
        await page.locator('#new').click();
        expect(await page.locator('.welcome').isVisible() && id(page) === '', 'a new chat');
        await picture(page, 'welcome');
        for (const query of ['wombat', '世界']) {
            await page.locator('#search').fill(query);
            await page.locator('#list a .small').first().waitFor();
            expect((await page.locator('#list a').first().innerText()).includes(query), query, await page.locator('#list').innerText());
        }
        await page.locator('#list a').first().click();
        await page.locator('article.assistant').waitFor();
        expect(await keptId(page) === mine, 'the found one is not open');
        await page.locator('#search').fill('nowhere-to-be-found');
        await page.getByText('Nothing found.').waitFor();
        await page.locator('#search').fill('');
        const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#export-one').click()]);
        const exported = JSON.parse(readFileSync(await download.path(), 'utf8'));
        expect(exported.conversations[0].messages[1].text === 'The wombat digs.', exported);
        await page.locator('#open-settings').click();
        const [all] = await Promise.all([page.waitForEvent('download'), page.locator('#export-all').click()]);
        const whole = JSON.parse(readFileSync(await all.path(), 'utf8'));
        expect(whole.conversations.some(c => c.id === mine), 'not in the export of all');
        await page.locator('#settings-done').click();
        await page.locator('#list li').filter({has: page.locator('[aria-current]')}).hover();
        await page.locator('#list li').filter({has: page.locator('[aria-current]')}).getByRole('button').click();
        await picture(page, 'delete');
        await page.locator('#ask-yes').click();
        await page.locator('.welcome').waitFor();
        expect((await fetch(`${server.url}/pith/conversations/${mine}`)).status === 404, 'it is still there');
        await page.locator('#open-settings').click();
        await page.locator('#import-file').setInputFiles(writeText('export.json', JSON.stringify(exported)));
        await page.getByText('1 chats read, 2 new messages.').waitFor();
        expect((await server.get(`/pith/conversations/${mine}`)).messages.length === 2, 'not imported');
        await page.locator('#open-settings').click();
        await page.locator('#import-file').setInputFiles(writeText('broken.json', '{"format": "x"'));
        await page.getByText('broken.json is no export of pith.').waitFor();
        await close();
    },

    async documents() {
        const {page, close} = await openPage(browser, server);
        const bodies = await madeUp(page, eventStream(['Ask in room seven.']));
        await page.locator('#files').setInputFiles(writeText('handbook.txt', 'Leave is asked for in room seven.\n'));
        await page.locator('#documents li').waitFor();
        expect(/handbook.txt\s*\d+ tokens/.test(await page.locator('#documents').innerText()), await page.locator('#documents').innerText());
        await page.locator('#files').setInputFiles(writeText('long.txt', 'word and word again\n'.repeat(60000)));
        await page.getByText(/long\.txt is too long: [\d,]+ tokens, and [\d,]+ of [\d,]+ are free\./).waitFor({timeout: 30000});
        await page.locator('#files').setInputFiles({name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from([137, 80, 78, 71, 0, 255])});
        await page.getByText('picture.png is no text file (UTF-8).').waitFor();
        await page.locator('#files').setInputFiles({name: 'big.txt', mimeType: 'text/plain', buffer: Buffer.alloc((4 << 20) + 1, 'x')});
        await page.getByText('big.txt has 4.2 MB; at most 4 MB can be added.').waitFor();
        expect(await page.locator('#documents li').count() === 1, 'a refused file was added');
        await say(page, 'Where do I ask for leave?');
        await page.locator('article.assistant').waitFor();
        await replied(page);
        expect(bodies[0].messages[0].content === 'handbook.txt:\n\nLeave is asked for in room seven.\n\n\n---\n\nWhere do I ask for leave?', bodies[0]);
        expect(await page.locator('.papers').innerText().then(text => text.includes('handbook.txt')), 'the message does not show it');
        expect(await page.locator('#documents li').count() === 0, 'it stays in the composer');
        await picture(page, 'document');
        await close();
    },

    async tools_and_reasoning() {
        const {page, close} = await openPage(browser, server);
        const call = {tool_calls: [{index: 0, id: 'call_1', type: 'function', function: {name: 'get_weather', arguments: '{"city": "Oslo"}'}}]};
        const bodies = await madeUp(page, eventStream([{reasoning_content: 'They want '}, {reasoning_content: 'the weather.'}, call], {finish: 'tool_calls'}),
            eventStream(['It rains in Oslo.']));
        await page.locator('#open-settings').click();
        await page.locator('#tools').fill('{not json');
        await page.locator('#settings-done').click();
        expect(await page.locator('#tools-wrong').isVisible(), 'wrong tools are taken');
        await page.locator('#tools').fill('[{"type": "function", "function": {"name": "get_weather"}}]');
        await page.locator('#settings-done').click();
        await say(page, 'Weather in Oslo?');
        await page.locator('.call').waitFor();
        expect((await page.locator('.call').innerText()).includes('Calls get_weather') && (await page.locator('.call pre').innerText()).includes('"city": "Oslo"'));
        expect(!await page.locator('.reasoning .plain').isVisible(), 'reasoning is not folded');
        await page.locator('.reasoning summary').click();
        expect(await page.locator('.reasoning .plain').innerText() === 'They want the weather.');
        await picture(page, 'tools');
        await page.locator('.results textarea').fill('rain, 8 degrees');
        await page.getByRole('button', {name: 'Send results'}).click();
        await page.locator('.text').getByText('It rains in Oslo.').waitFor();
        await replied(page);
        expect(bodies[0].tools[0].function.name === 'get_weather', bodies[0]);
        expect(bodies[1].messages[2].role === 'tool' && bodies[1].messages[2].tool_call_id === 'call_1' && bodies[1].messages[2].content === 'rain, 8 degrees' &&
            bodies[1].messages[1].tool_calls[0].function.name === 'get_weather', bodies[1].messages);
        await close();
    },

    async adapters() {
        const {page, close} = await openPage(browser, server);
        expect(!await page.locator('#adapter').isVisible(), 'a choice of adapters without any');
        const bodies = await madeUp(page, eventStream(['yes']));
        await page.route('**/v1/adapters', route => route.fulfill({json: {object: 'list', data: [{id: 'legal', object: 'adapter', loaded: true, scale: 1}]}}));
        await page.reload();
        await page.locator('body[data-ready]').waitFor();
        await page.locator('#adapter').selectOption('=legal');
        await say(page, 'hello');
        await replied(page);
        expect(JSON.stringify(bodies[0].lora) === '[{"id":"legal","scale":1}]', bodies[0]);
        await settings(page, () => page.locator('#language').selectOption('zh'));
        const names = await page.locator('#adapter option').allInnerTexts();
        expect(names.join() === '适配器：服务器默认,不用适配器,legal' && await page.locator('#adapter').inputValue() === '=legal', names);
        await close();
    },

    async upstream_model() {
        const {page, close} = await openPage(browser, server);
        const bodies = await madeUp(page, eventStream(['from afar']));
        const big = {id: 'big', object: 'model', owned_by: 'upstream', status: 'upstream'};
        await page.route('**/v1/models', async route => {
            const json = await (await route.fetch()).json();
            await route.fulfill({json: {...json, data: [...json.data, big]}});
        });
        await page.route('**/v1/models/big', route => route.fulfill({json: big}));
        await page.reload();
        await page.locator('body[data-ready]').waitFor();
        await page.locator('#model').selectOption({label: 'big (answered elsewhere)'});
        await page.locator('#files').setInputFiles({name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('Room seven.')});
        await page.locator('#documents li').waitFor();
        await say(page, 'Which room?');
        await page.locator('article.assistant').waitFor();
        await replied(page);
        expect(bodies[0].model === 'big' && bodies[0].messages[0].content.includes('Room seven.'), bodies[0]);
        await close();
    },

    async hostile_text() {
        const hostile = ['<script>window.harm = 1</script>', '<img src=x onerror="window.harm=2">', '[a](javascript:window.harm=3)', '[b](data:text/html,<script>1</script>)',
            '![pixel](https://evil.example/p.png)', '<iframe src="https://evil.example"></iframe>', '<style>body{display:none}</style>',
            '<form action="https://evil.example"><input name="title"></form>', '<a href="https://evil.example" style="position:fixed;inset:0">x</a>',
            '[c](https://ok.example "t")', '<svg><animate onbegin="window.harm=4"/></svg>', '<math><mtext><table><mglyph><style><img src=x onerror=window.harm=5>',
            '```html\n<script>window.harm=6</script>\n```', '```"><img src=x onerror=window.harm=7>\nx\n```', '| a | b |\n|--|--|\n| <b onclick="window.harm=8">x</b> | [y](JaVaScRiPt:alert(1)) |',
            '<meta http-equiv="refresh" content="0;url=https://evil.example">', '<base href="https://evil.example/">', '`<script>`', '\u202Egnp.exe'].join('\n\n');
        const wide = `|${' column with words |'.repeat(60)}\n|${'--|'.repeat(60)}\n${`|${' cell |'.repeat(60)}\n`.repeat(40)}`;
        const deep = '>'.repeat(20000) + ' x', brackets = '['.repeat(30000), stars = '*a '.repeat(20000), long = 'x'.repeat(300000);
        const {page, close} = await openPage(browser, server);
        await madeUp(page, ...[hostile, wide, deep, brackets, stars, long].map(text => eventStream([text])));
        for (let i = 1; i <= 6; i++) {
            await say(page, `hostile <script>window.harm=${10 + i}</script> ${i}`);
            await page.locator('article.assistant').nth(i - 1).waitFor();
            await replied(page);
        }
        expect(await page.evaluate(() => window.harm) === undefined, 'harm', await page.evaluate(() => window.harm));
        const links = await page.locator('.text a').evaluateAll(all => all.map(a => [a.getAttribute('href'), a.rel, a.target]));
        expect(links.every(([href]) => href === null || /^https:\/\//.test(href)), links);
        expect(links.every(([href, rel, target]) => href === null || (rel.includes('noopener') && rel.includes('noreferrer') && target === '_blank')), links);
        expect(await page.locator('#messages :is(script, img, iframe, style:not(svg style), form:not(.editor), input, meta, base, math)').count() === 0, 'elements');
        expect(await page.locator('#messages [style], #messages [onclick], #messages [onerror], #messages [id], #messages [name]').count() === 0, 'attributes');
        expect((await texts(page, 'assistant'))[0].includes('<script>window.harm = 1</script>'), 'HTML is not shown as text');
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the window');
        await allKept(page, 12);
        await page.reload(); // the same from the history
        await page.locator('article.assistant').nth(5).waitFor();
        expect(await page.evaluate(() => window.harm) === undefined, 'harm from the history');
        const titles = `${server.url}/pith/conversations/hostile`;
        await fetch(titles, {method: 'PUT', body: JSON.stringify({title: '<img src=x onerror=window.harm=9>"\'>'})});
        await page.reload();
        await page.getByText('<img src=x onerror=window.harm=9>').waitFor();
        expect(await page.evaluate(() => window.harm) === undefined, 'harm from a title');
        await fetch(titles, {method: 'DELETE'});
        await close();
    },

    async markdown() {
        const {page, close} = await openPage(browser, server);
        const text = '# Plan\n\nFirst **bold**, *soft*, `code` and a [link](https://example.org).\n\n1. one\n2. two\n   - inner\n\n> quoted\n\n```python\ndef area(r):\n    """Of a circle."""\n' +
            '    return 3.14159 * r ** 2  # close\n```\n\n| What | Days |\n|--|--:|\n| Leave | 25 |\n| Illness | as needed |\n\n- [x] done\n- [ ] open';
        await madeUp(page, eventStream(text.match(/[^]{1,9}/g)));
        await say(page, 'How do I plan this? Show me code and a table.');
        await replied(page);
        for (const selector of ['h1', 'strong', 'em', 'ol li ul li', 'blockquote', 'pre code .hljs-keyword', 'table td', '.bar'])
            expect(await page.locator(`article.assistant ${selector}`).first().isVisible(), selector);
        expect((await texts(page, 'assistant'))[0].includes('☑ done'), 'task lists');
        await page.locator('#open-account').click();
        await page.locator('.card').nth(3).waitFor();
        await picture(page, 'markdown');
        await close();
    },

    async copies() {
        const {page, context, close} = await openPage(browser, server);
        await context.grantPermissions(['clipboard-read', 'clipboard-write']);
        await madeUp(page, eventStream(['Take *this*:\n\n```js\nlet x;\n```']));
        await say(page, 'code');
        await replied(page);
        const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
        await page.locator('.bar').getByRole('button', {name: 'Copy'}).click();
        expect((await clipboard()).trim() === 'let x;', await clipboard());
        await page.locator('article.assistant .foot').getByRole('button', {name: 'Copy'}).click();
        expect((await clipboard()).startsWith('Take *this*'), await clipboard());
        await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true}));
        await page.locator('.bar').getByRole('button', {name: 'Copy'}).click();
        await page.locator('#input').focus();
        await page.keyboard.press('Control+v');
        expect((await page.locator('#input').inputValue()).trim() === 'let x;', 'without navigator.clipboard', await page.locator('#input').inputValue());
        await close();
    },

    async account() {
        const {page, close} = await openPage(browser, server);
        await short(page);
        await page.locator('#open-account').click();
        for (const text of ['Count to three.', 'Count to four.']) {
            await say(page, text);
            await replied(page);
        }
        const cards = await page.locator('.card').allInnerTexts();
        expect(/To first token\s+[\d.]+ s/.test(cards[0]) && /[\d.]+ tokens\/s/.test(cards[1]) && /\d+ of \d+ tokens/.test(cards[2]), cards);
        await page.locator('.card').nth(3).filter({hasText: /MB/}).waitFor();
        await page.locator('.chart canvas').first().waitFor();
        expect(Number((await page.locator('.card').nth(2).innerText()).match(/(\d+) of/)[1]) > 10, 'the second prompt came not from the cache', cards[2]);
        await picture(page, 'account');
        await page.locator('#open-account').click();
        expect(!await page.locator('#account').isVisible(), 'it does not close');
        await close();
    },

    async dark_and_light() {
        for (const colorScheme of ['light', 'dark']) {
            const {page, close} = await openPage(browser, server, {colorScheme});
            await madeUp(page, eventStream(['A *calm* answer with `code`.\n\n```js\nconst x = 1; // note\n```']));
            await say(page, 'Hello there.');
            await replied(page);
            expect(await contrast(page, '#messages .text', 'body') >= 7, colorScheme, 'text', await contrast(page, '#messages .text', 'body'));
            for (const soft of ['.figures', '#model', '.who']) expect(await contrast(page, soft, 'body') >= 4.5, colorScheme, soft, await contrast(page, soft, 'body'));
            expect((await luminance(page, 'body', 'backgroundColor') < 0.2) === (colorScheme === 'dark'), colorScheme, 'ground');
            await picture(page, colorScheme);
            await settings(page, () => page.locator('#theme').selectOption(colorScheme === 'dark' ? 'light' : 'dark'));
            expect((await luminance(page, 'body', 'backgroundColor') < 0.2) === (colorScheme === 'light'), 'the other one was chosen');
            await page.reload();
            expect((await luminance(page, 'body', 'backgroundColor') < 0.2) === (colorScheme === 'light'), 'the choice is forgotten');
            await close();
        }
    },

    async phone() {
        const {page, close} = await openPage(browser, server, {viewport: {width: 390, height: 844}, hasTouch: true, isMobile: true});
        await madeUp(page, eventStream(['A reply with a long_word_' + 'x'.repeat(200) + '\n\n```\n' + 'y'.repeat(300) + '\n```\n\n|a|b|c|d|e|f|g|h|\n|--|--|--|--|--|--|--|--|\n|one two|three|four|five|six|seven|eight|nine|']));
        await say(page, 'On a small screen?');
        await replied(page);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'wider than the screen');
        for (const place of ['#input', '#send', '#menu', '#model'])
            expect(await page.locator(place).evaluate(e => e.getBoundingClientRect().right <= innerWidth && e.getBoundingClientRect().bottom <= innerHeight), place);
        await picture(page, 'phone');
        expect(!await page.locator('#new').isVisible(), 'the list covers the page');
        await page.locator('#menu').click();
        await page.locator('#new').waitFor();
        await page.waitForTimeout(250);
        await picture(page, 'phone-list');
        await page.keyboard.press('Escape');
        expect(!await page.locator('#new').isVisible() && await page.evaluate(() => document.activeElement.id) === 'menu', 'Escape does not close the list');
        await close();
    },

    async chinese() {
        const {page, close} = await openPage(browser, server, {locale: 'zh-CN'});
        expect(await page.evaluate(() => document.documentElement.lang) === 'zh-CN');
        expect(await page.getByRole('button', {name: '新对话'}).isVisible() && await page.locator('#input').getAttribute('placeholder') === '输入消息');
        await madeUp(page, eventStream(['年假需要提前**两周**申请,填写表格后交给主管。']));
        await say(page, '年假怎么申请?');
        await replied(page);
        await picture(page, 'chinese');
        const left = await page.evaluate(() => [...document.querySelectorAll('#app :not(#list *), dialog *')].flatMap(e => [e.getAttribute('aria-label'), e.placeholder, e.title,
            e.children.length ? '' : e.textContent]).filter(text => text && /[A-Za-z]{4,}/.test(text) && !/^(pith|English|smollm2\S*|made-up|.*JSON，OpenAI|\d.*)/.test(text)));
        expect(left.length === 0, 'texts that are not Chinese', left);
        await settings(page, () => page.locator('#language').selectOption('en'));
        await page.getByRole('button', {name: 'New chat'}).waitFor();
        await page.reload();
        await page.getByRole('button', {name: 'New chat'}).waitFor();
        await close();
    },

    async keyboard_alone() {
        const {page, close} = await openPage(browser, server);
        const press = async (key, times = 1) => {
            for (let i = 0; i < times; i++) await page.keyboard.press(key);
        };
        const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent);
        const tabTo = async (wanted, back = false) => {
            for (let i = 0; i < 60; i++) {
                await press(back ? 'Shift+Tab' : 'Tab');
                if ((await focused()) === wanted) return;
            }
            throw new Error(`Tab does not come to ${wanted}`);
        };
        await tabTo('Skip to the message field', true);
        await press('Enter');
        expect((await focused()) === 'input', 'the skip link', await focused());
        await page.keyboard.type('Write a long poem about rivers.');
        await press('Enter');
        await page.locator('article.assistant .text').filter({hasText: /\w/}).waitFor();
        await press('Escape');
        await replied(page);
        expect((await focused()) === 'input', 'the focus was lost', await focused());
        await tabTo('Edit', true);
        await tabTo('Answer again');
        await press('Enter');
        await page.locator('#stop').waitFor();
        await press('Escape');
        await replied(page);
        await tabTo('open-settings', true);
        await press('Enter');
        expect(await page.locator('#settings').evaluate(d => d.open), 'the settings do not open');
        await picture(page, 'settings');
        await tabTo('settings-done');
        await press('Escape');
        expect((await focused()) === 'open-settings', 'the focus does not come back', await focused());
        await tabTo('new', true);
        await press('Enter');
        expect(await page.locator('.welcome').isVisible() && (await focused()) === 'input');
        await close();
    },

    async names_for_everything() {
        const {page, close} = await openPage(browser, server);
        await madeUp(page, eventStream(['an answer']));
        await say(page, 'a question');
        await replied(page);
        const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input:not([type=file]), select, textarea, a[href], summary')]
            .filter(e => !(e.getAttribute('aria-label') || e.closest('label')?.innerText || e.textContent).trim()).map(e => e.outerHTML));
        expect(nameless.length === 0, nameless);
        const ids = await page.evaluate(() => [...document.querySelectorAll('[id]')].map(e => e.id));
        expect(new Set(ids).size === ids.length, 'ids twice', ids);
        await close();
    },

    async key() {
        const closed = await Server.start(program, model, '--key-file', writeText('key', 'open-sesame\n'));
        try {
            const context = await browser.newContext({locale: 'en-US'});
            const page = await context.newPage();
            await page.goto(closed.url);
            await page.locator('#key-input').fill('wrong-key-1');
            await page.locator('#key-ok').click();
            await page.getByText('The server does not take this key.').waitFor();
            await picture(page, 'key');
            await page.locator('#key-input').fill('open-sesame');
            await page.keyboard.press('Enter');
            await page.locator('body[data-ready]').waitFor();
            await short(page);
            await say(page, 'hello');
            await replied(page);
            expect((await texts(page, 'assistant'))[0], 'no reply with the key');
            const kept = await page.evaluate(() => [sessionStorage.getItem('pith.key'), JSON.stringify(localStorage), document.cookie]);
            expect(kept[0] === 'open-sesame' && !kept[1].includes('sesame') && !kept[2], kept);
            const other = await context.newPage();
            await other.goto(closed.url);
            await other.locator('#key-input').waitFor();
            await context.close();
            expect(!closed.log.includes('sesame'), 'the key is in the log');
        } finally {
            await closed.stop();
        }
    },

    async without_history() {
        const bare = await Server.start(program, model, '--history', 'off');
        try {
            const {page, close} = await openPage(browser, bare);
            await short(page);
            expect((await page.locator('#kept').innerText()).includes('--history off'), await page.locator('#kept').innerText());
            await say(page, 'hello');
            await replied(page);
            expect((await texts(page, 'assistant'))[0].length > 0 && await page.locator('#notice').isHidden(), 'the chat does not go on');
            await close();
        } finally {
            await bare.stop();
        }
    },

    async history_that_fails() {
        const {page, close} = await openPage(browser, server);
        await madeUp(page, eventStream(['still here']));
        const why = 'the history file: there is no room: the disk is full. Chats go on, but are not kept';
        await page.route('**/pith/conversations/**', route => (route.request().method() === 'PUT' ? route.fulfill({status: 503, json: {error: {message: why}}}) : route.continue()));
        await say(page, 'hello');
        await replied(page);
        expect((await texts(page, 'assistant'))[0] === 'still here');
        await page.getByText(why).waitFor();
        expect(id(page) === '', 'the address names what is not kept');
        await page.unroute('**/pith/conversations/**'); // there is room again: all of it is kept
        await say(page, 'and now?');
        await replied(page);
        await page.locator('#list a[aria-current]').waitFor();
        const kept = await server.get(`/pith/conversations/${await keptId(page)}`);
        expect(kept.messages.length === 4 && kept.messages[0].text === 'hello' && await page.locator('#notice').isHidden(), kept);
        await close();
    },

    async errors_are_told() {
        const {page, close} = await openPage(browser, server);
        await settings(page, () => page.locator('#temperature').fill('1.5'));
        await page.route('**/v1/chat/completions', route => route.fulfill({status: 400, json: {error: {message: 'the prompt has 9,000 tokens, the context 8,192'}}}));
        await say(page, 'hello');
        await page.getByText('the prompt has 9,000 tokens').first().waitFor();
        await replied(page);
        await page.unroute('**/v1/chat/completions');
        await short(page);
        await page.getByRole('button', {name: 'Answer again'}).click();
        await replied(page);
        expect((await texts(page, 'assistant'))[0].length > 0 && await page.locator('.branches').count() === 0, 'the failed one counts as a branch');
        await page.route('**/v1/chat/completions', route => route.fulfill({status: 200, contentType: 'text/event-stream', body: eventStream(['half a']).split('data: {"id":"x","object":"chat.completion.chunk","model":"made-up","choices":[{"index":0,"delta":{},')[0]}));
        await say(page, 'again');
        await page.getByText('The server does not answer.').first().waitFor();
        expect((await texts(page, 'assistant'))[1] === 'half a', 'what came is lost');
        await close();
    },

    async killed_server() {
        const file = join(folder, 'killed', 'c.db');
        const first = await Server.start(program, model, '--history', file);
        const {page, context, faults} = await openPage(browser, first);
        const endless = route => route.continue({postData: JSON.stringify({...route.request().postDataJSON(), logit_bias: {2: -100}})}); // no end token
        await page.route('**/v1/chat/completions', endless);
        await say(page, 'Write a very long story about the sea.');
        await page.locator('article.assistant .text').filter({hasText: /\w{3}/}).waitFor();
        await page.waitForTimeout(5600); // so long until a part of it is saved
        const seen = (await texts(page, 'assistant'))[0];
        await first.stop('SIGKILL');
        await replied(page);
        expect(await page.getByText('The server does not answer.').first().isVisible(), 'it is not told');
        expect((await texts(page, 'assistant'))[0].startsWith(seen.slice(0, 40)), 'what came is lost');
        const again = await Server.start(program, model, '--history', file, '--port', String(first.port));
        try {
            await page.reload();
            await page.locator('article.assistant').waitFor();
            expect((await texts(page, 'user'))[0] === 'Write a very long story about the sea.');
            expect((await texts(page, 'assistant'))[0].slice(0, 40) === seen.slice(0, 40), 'the saved part is lost');
            expect(faults.length === 0, faults);
            await context.close();
        } finally {
            await again.stop();
        }
    },

    async fast_and_small() {
        const times = [];
        for (let i = 0; i < 5; i++) {
            const {page, close} = await openPage(browser, server);
            times.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity));
            await close();
        }
        times.sort((a, b) => a - b);
        const size = (await (await fetch(server.url)).text()).length;
        console.log(`        first paint ${times.map(Math.round).join(', ')} ms; ${size} bytes`);
        expect(times[0] < 300, 'first paint', times);
        expect(size <= 400 * 1024, size);
    },
};

async function luminance(page, selector, property) {
    const colour = await page.locator(selector).first().evaluate((e, name) => getComputedStyle(e)[name], property);
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map(v => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

async function contrast(page, text, ground) {
    const [a, b] = [await luminance(page, text, 'color'), await luminance(page, ground, 'backgroundColor')].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}

async function main() {
    const playwright = loadPlaywright(packages), executablePath = findChromium();
    const absent = !existsSync(model) ? 'the default model is not in $PITH_TEST_MODELS' : !executablePath ? 'there is no Chromium (script/bootstrap page-test)' :
        !playwright ? 'npm cannot fetch playwright-core' : '';
    if (absent) return console.log(`0 passed, 0 failed, 1 skipped: ${absent}`), 0;
    server = await Server.start(program, model, '--history', join(folder, 'c.db'));
    const {page, history} = await server.get('/pith/status');
    if (!page.built || !history.kept) {
        await server.stop();
        return console.log(`0 passed, 0 failed, 1 skipped: this build has no ${page.built ? 'history' : 'page'}`), 0;
    }
    browser = await playwright.chromium.launch({executablePath, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync']});
    const counts = {passed: 0, failed: 0, skipped: 0};
    for (const [name, run] of Object.entries({...cases, ...hostileCases})) {
        if (words.length && !words.some(word => name.includes(word))) continue;
        const began = Date.now();
        try {
            await run({browser, server});
            counts.passed++;
            console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
        } catch (error) {
            const isSkip = error instanceof Skip;
            counts[isSkip ? 'skipped' : 'failed']++;
            console.log(`${isSkip ? 'skipped' : 'FAILED '} ${name}: ${error.message.slice(0, 1500)}`);
        }
    }
    await browser.close();
    await server.stop();
    rmSync(folder, {recursive: true, force: true});
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    return counts.failed || !counts.passed ? 1 : 0;
}

process.exit(await main());
