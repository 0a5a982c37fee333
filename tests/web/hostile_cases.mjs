// Cases of test_page.mjs in which something means harm or goes wrong: replies and files in strange shapes, a browser that keeps nothing, two
// things at once, other tabs.
import {eventStream, expect, madeUp, openPage, picture, replied, say, writeText} from './page_tools.mjs';

const texts = (page, role) => page.locator(`article.${role} > .text`).allInnerTexts();
const chunk = (delta, more = {}) => JSON.stringify({model: 'made-up', choices: [{index: 0, delta, ...more}]});
const put = (server, path, body) => fetch(`${server.url}/pith/conversations/${path}`, {method: 'PUT', body: JSON.stringify(body)});

async function importOf(server, ...conversations) {
    const answer = await fetch(`${server.url}/pith/import`, {method: 'POST', body: JSON.stringify({format: 'pith-conversations', version: 1, conversations})});
    expect(answer.ok, await answer.text());
}

export const hostileCases = {
    async streams_in_any_form({browser, server}) {
        const {page, close} = await openPage(browser, server);
        const one = chunk({content: 'It '}), two = chunk({content: 'rains.'});
        const forms = [
            `data: ${one}\r\n\r\ndata: ${two}\r\n\r\ndata: [DONE]\r\n\r\n`,
            `data:${one}\r\rdata:${two}\r\rdata:[DONE]\r\r`,
            `: a comment\n\nid: 1\nevent: message\ndata: ${one}\n\nretry: 5\n: more\ndata: ${two}\nid: 2\n\ndata: [DONE]\n\n`,
            `\uFEFFdata: ${one.replace('"choices"', '\ndata: "choices"')}\n\ndata: ${two}\n\ndata: [DONE]\n\ndata: {"more": `,
        ];
        await madeUp(page, ...forms);
        for (let i = 0; i < forms.length; i++) {
            await say(page, `form ${i}`);
            await page.locator('article.assistant').nth(i).waitFor();
            await replied(page);
            expect((await texts(page, 'assistant'))[i] === 'It rains.', i, await page.locator('article.assistant').nth(i).innerText());
            expect(await page.locator('.wrong:visible').count() === 0, i, 'an error is told');
        }
        await close();
    },

    async replies_in_strange_shapes({browser, server}) {
        const {page, close} = await openPage(browser, server);
        const strange = ['null', '1', '[]', '{}', '{"choices": null}', '{"choices": [null, 7]}', '{"choices": [{"delta": null}]}', '{"choices": [{}], "model": {"a": 1}}',
            chunk({content: {toString: 1}}), chunk({content: 7, reasoning_content: []}), chunk({tool_calls: 'x'}), chunk({tool_calls: [null, {index: 1e9, function: {name: 'far'}}]}),
            chunk({tool_calls: [{index: -1}, {index: 'constructor'}, {index: 1, function: null}, {index: 1, function: {name: ['n'], arguments: {}}}]}),
            chunk({}, {finish_reason: {}}), '{"choices": [], "timings": {"ttft_ms": "x", "predicted_n": null}}', '{"choices": [], "timings": 5}',
            '{"choices": [], "prompt_progress": {"total": "<b>", "processed": {}}}', chunk({content: 'still here'})];
        const all = strange.map(event => `data: ${event}\n\n`).join('');
        await madeUp(page, `${all}data: [DONE]\n\n`, `data: {"choices"\n\n`, `data: ${chunk({content: 'cut'})}\n\ndata: {"error": {"message": {"a": 1}}}\n\n`, 'data: {"error": "plain"}\n\n');
        for (let i = 0; i < 4; i++) {
            await say(page, `strange ${i}`);
            await page.locator('article.assistant').nth(i).waitFor();
            await replied(page);
        }
        expect((await texts(page, 'assistant'))[0] === 'still here' && await page.locator('article.assistant').first().locator('.wrong').count() === 0, await page.locator('#messages').innerText());
        expect(await page.getByText('in a form that this page does not understand').count() >= 1, await page.locator('#messages').innerText());
        expect(!/undefined|NaN|\[object/.test(await page.locator('#messages').innerText()), await page.locator('#messages').innerText());
        await page.locator('#open-account').click();
        await page.locator('.card').first().waitFor();
        expect(!/undefined|NaN/.test(await page.locator('#account').innerText()), await page.locator('#account').innerText());
        await close();
    },

    async imports_in_strange_shapes({browser, server}) {
        const message = (id, parent, more, role = 'assistant') => ({id, parent, role, text: `text of ${id}`, more});
        await importOf(server, {id: 'strange', title: 'strange', settings: {system: 5, tools: {a: 1}, temperature: 'hot', maxTokens: [], model: {}, adapter: 9, isPrivate: 'yes'}, messages: [
            message('a', null, {documents: 'x', calls: 7}, 'user'), message('b', 'a', {calls: [null, {name: 5, arguments: {}}], timings: 'fast', reasoning: {a: 1}, model: [], error: 3}),
            message('c', 'b', {documents: {length: 3}, timings: {ttft_ms: {}, predicted_n: 'x'}}, 'user'), message('d', 'c', {call: {}, name: []}, 'tool'),
            message('e', 'd', {calls: {}, documents: [1, {name: {}, text: null, tokens: 'n'}], finish: {}}, 'system')]});
        const {page, close} = await openPage(browser, server, {}, '/#strange');
        const bodies = await madeUp(page, eventStream(['goes on']));
        expect((await page.locator('#messages').innerText()).includes('text of e') && await page.locator('#notice').isHidden(), await page.locator('#notice').innerText());
        await page.locator('#open-account').click();
        await say(page, 'and now?');
        await replied(page);
        expect((await texts(page, 'assistant')).at(-1) === 'goes on', await page.locator('#messages').innerText());
        expect(bodies[0].messages.map(one => one.role).join(' ') === 'user assistant user tool system user' && bodies[0].temperature === 0.7 && !bodies[0].tools, bodies[0]);
        expect(!/undefined|NaN|\[object/.test(await page.locator('#main').innerText()), await page.locator('#main').innerText());
        await close();
    },

    async a_browser_that_keeps_nothing({browser, server}) {
        const {page, context, close} = await openPage(browser, server);
        await context.addInitScript(() => {
            for (const name of ['localStorage', 'sessionStorage'])
                Object.defineProperty(window, name, {get() { throw new DOMException('The operation is insecure.', 'SecurityError'); }});
        });
        await page.reload();
        await page.locator('body[data-ready]').waitFor();
        await madeUp(page, eventStream(['without storage']));
        await page.locator('#open-settings').click();
        await page.locator('#theme').selectOption('dark');
        await page.locator('#settings-done').click();
        await say(page, 'hello');
        await replied(page);
        expect((await texts(page, 'assistant'))[0] === 'without storage' && await page.locator('#notice').isHidden(), 'the page does not work');
        expect(await page.evaluate(() => document.documentElement.dataset.theme) === 'dark');
        await close();
    },

    async addresses_that_name_no_chat({browser, server}) {
        const {page, close} = await openPage(browser, server, {}, '/#../../metrics');
        const asked = [];
        page.on('request', request => asked.push(new URL(request.url()).pathname));
        await madeUp(page, eventStream(['long '.repeat(50)]));
        await page.locator('.skip').focus();
        await page.keyboard.press('Enter');
        expect(await page.evaluate(() => document.activeElement.id) === 'input', 'the skip link');
        await page.evaluate(() => { location.hash = '#a/b?c'; });
        await page.evaluate(() => { location.hash = '#%00'; });
        await page.waitForTimeout(200);
        expect(await page.locator('#notice').isHidden() && !asked.length, await page.locator('#notice').innerText(), asked);
        await close();
    },

    async one_enter_one_message({browser, server}) {
        const {page, close} = await openPage(browser, server);
        const bodies = await madeUp(page, eventStream(['read']));
        await page.route('**/apply-template', async route => {
            await new Promise(resolve => setTimeout(resolve, 300));
            await route.continue();
        });
        await page.locator('#files').setInputFiles(writeText('note.txt', 'Leave is asked for in room seven.\n'));
        await page.locator('#documents li').waitFor();
        await page.locator('#input').fill('Where?');
        for (let i = 0; i < 3; i++) await page.locator('#input').press('Enter');
        await page.locator('article.assistant').first().waitFor();
        await replied(page);
        expect(bodies.length === 1 && (await texts(page, 'user')).length === 1, bodies.length, await texts(page, 'user'));
        await page.locator('#files').setInputFiles(writeText('note.txt', 'Leave is asked for in room eight.\n'));
        await page.locator('#documents li').waitFor();
        await say(page, 'And this one?');
        await page.locator('#new').click(); // while its tokens are counted
        await page.waitForTimeout(800);
        expect(bodies.length === 1 && await page.locator('.welcome').isVisible(), 'the message went into another chat', bodies.length);
        expect(await page.locator('#input').inputValue() === 'And this one?' && await page.locator('#documents li').count() === 1, 'what was written is lost');
        await close();
    },

    async the_last_click_counts({browser, server}) {
        for (const name of ['slow', 'fast']) {
            await put(server, name, {title: `the ${name} one`});
            await put(server, `${name}/messages/m`, {role: 'user', text: `text of ${name}`, parent: null});
        }
        const {page, close} = await openPage(browser, server);
        await page.route('**/pith/conversations/slow', async route => {
            await new Promise(resolve => setTimeout(resolve, 500));
            await route.continue();
        });
        await page.getByRole('link', {name: 'the slow one'}).click();
        await page.getByRole('link', {name: 'the fast one'}).click();
        await page.getByText('text of fast').waitFor();
        await page.waitForTimeout(800);
        expect((await texts(page, 'user'))[0] === 'text of fast' && page.url().endsWith('#fast'), await texts(page, 'user'), page.url());
        await close();
    },

    async a_chat_that_another_tab_deletes({browser, server}) {
        await put(server, 'gone', {title: 'soon gone'});
        await put(server, 'gone/messages/m', {role: 'user', text: 'hello', parent: null});
        const {page, close} = await openPage(browser, server, {}, '/#gone');
        await madeUp(page, eventStream(['an answer']));
        await fetch(`${server.url}/pith/conversations/gone`, {method: 'DELETE'});
        await say(page, 'still there?');
        await replied(page);
        await page.getByText('This chat was deleted elsewhere').waitFor();
        expect((await texts(page, 'assistant'))[0] === 'an answer', 'the chat does not go on');
        await page.route('**/pith/conversations/*', route => (route.request().method() === 'DELETE' ? route.fulfill({status: 503, json: {error: {message: 'the disk is away'}}}) : route.continue()));
        await put(server, 'stays', {title: 'cannot be deleted'});
        await page.reload();
        await page.getByText('there is no conversation gone').waitFor(); // and the page is there without it
        const entry = page.locator('#list li').filter({hasText: 'cannot be deleted'});
        await entry.hover();
        await entry.getByRole('button').click();
        await page.locator('#ask-yes').click();
        await page.getByText('the disk is away').waitFor();
        expect(await entry.count() === 1, 'it left the list');
        await close();
    },

    async choices_keep_their_names({browser, server}) {
        const {page, close} = await openPage(browser, server);
        await page.route('**/v1/adapters', route => route.fulfill({json: {object: 'list', data: [{id: 'legal', object: 'adapter', loaded: true, scale: 1}]}}));
        await page.reload();
        await page.locator('#adapter').waitFor();
        const names = () => page.locator('#adapter option').allInnerTexts();
        expect(JSON.stringify(await names()) === '["Adapter: as started","No adapter","legal"]', await names());
        await page.locator('#open-settings').click();
        await page.locator('#language').selectOption('zh');
        expect(JSON.stringify(await names()) === '["适配器：服务器默认","不用适配器","legal"]', await names());
        await close();
    },

    async who_answers_is_told({browser, server}) {
        const {page, close} = await openPage(browser, server);
        await page.locator('#open-settings').click();
        expect(!await page.locator('#private').isVisible(), 'a choice without an upstream');
        await page.locator('#settings-done').click();
        await page.route('**/pith/status', async route => route.fulfill({json: {...await (await route.fetch()).json(), upstream: true}}));
        await page.reload();
        await page.getByText('may ask another engine').waitFor();
        const heads = [];
        await page.route('**/v1/chat/completions', route => {
            heads.push(route.request().headers());
            const headers = {'X-Pith-Answered-By': heads.length > 1 ? 'local' : 'upstream', 'X-Pith-Reason': 'the prompt is long <b>'};
            return route.fulfill({status: 200, contentType: 'text/event-stream', headers, body: eventStream(['an answer'])});
        });
        await say(page, 'who are you?');
        await replied(page);
        await page.getByText('Answered by another engine (the prompt is long <b>)').waitFor();
        await page.locator('#open-settings').click();
        await page.locator('#private').check();
        await picture(page, 'private');
        await page.locator('#settings-done').click();
        await say(page, 'and now?');
        await replied(page);
        expect(!('x-pith-private' in heads[0]) && heads[1]['x-pith-private'] === '1', heads.map(head => head['x-pith-private']));
        expect(await page.getByText('Answered by another engine').count() === 1, 'a reply of the model here');
        await page.locator('#list a[aria-current]').waitFor();
        await page.reload();
        await page.getByText('Answered by another engine').waitFor();
        await page.locator('#open-settings').click();
        expect(await page.locator('#private').isChecked(), 'the mark is forgotten');
        await close();
    },

    async thousands_of_messages({browser, server}) {
        const n = 3000, text = i => `Message **${i}** with \`code\` and a [link](https://example.org).\n\n- one\n- two`;
        await importOf(server, {id: 'many', title: 'many', messages: Array.from({length: n}, (_, i) => ({id: `m${i}`, parent: i ? `m${i - 1}` : null, role: i % 2 ? 'assistant' : 'user', text: text(i)}))});
        const {page, close} = await openPage(browser, server);
        await madeUp(page, eventStream(['the last one']));
        const begun = Date.now();
        await page.getByRole('link', {name: 'many', exact: true}).click();
        await page.getByText(`Message ${n - 1} with`).waitFor({timeout: 30000});
        const opened = Date.now() - begun;
        await say(page, 'one more');
        await page.locator('article').getByText('the last one').waitFor();
        await replied(page);
        console.log(`        ${n} messages: opened in ${opened} ms, answered after ${Date.now() - begun - opened} ms`);
        expect(await page.locator('article').count() === 200 && opened < 8000, await page.locator('article').count(), opened);
        await page.getByRole('button', {name: 'Show earlier messages (2,802)'}).click();
        expect(await page.locator('article').count() === 400 && await page.locator('[data-id=m2602]').isVisible(), await page.locator('article').count());
        await page.locator('#search').fill('Message **7**');
        await page.locator('#list a .small').first().click();
        await page.locator('[data-id=m7]').waitFor();
        expect(await page.locator('[data-id=m7]').evaluate(e => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().top < innerHeight), 'what was found is not in sight');
        await fetch(`${server.url}/pith/conversations/many`, {method: 'DELETE'});
        await close();
    },
};
