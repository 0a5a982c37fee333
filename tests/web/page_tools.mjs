// What the tests of the page share: a server, a browser whose every request and violation is written down, replies made up by the test.
import {spawn, spawnSync} from 'node:child_process';
import {copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), 'pith-page-'));

export class Skip extends Error {}

export function expect(condition, ...shown) {
    if (!condition) throw new Error(shown.map(item => (typeof item === 'string' ? item : JSON.stringify(item))?.slice(0, 600)).join(' | '));
}

/** playwright-core from the folder of packages, fetched there when it is not; null where it cannot be had. */
export function loadPlaywright(packages) {
    mkdirSync(packages, {recursive: true});
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) copyFileSync(join(here, name), join(packages, name));
    const require = createRequire(join(packages, 'package.json'));
    const wanted = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')).devDependencies['playwright-core'];
    const file = join(packages, 'node_modules/playwright-core/package.json');
    if (!existsSync(file) || JSON.parse(readFileSync(file, 'utf8')).version !== wanted)
        spawnSync('npm', ['ci', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1', '--fetch-timeout=30000'], {cwd: packages, timeout: 240000});
    return existsSync(file) ? require('playwright-core') : null;
}

export function findChromium() {
    const places = [process.env.PITH_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
    return places.find(place => place && existsSync(place));
}

/** `pith serve` with the default model on a free port, or the one given. */
export class Server {
    static async start(program, model, ...more) {
        const server = new Server();
        const env = {...process.env, PITH_HOME: folder, PITH_API_KEY: ''};
        const options = ['serve', '-m', model, '--cache', 'off', ...(more.includes('--port') ? [] : ['--port', '0']), ...more];
        server.process = spawn(program, options, {stdio: ['ignore', 'ignore', 'pipe'], env});
        server.log = '';
        await new Promise((resolve, reject) => {
            server.process.stderr.on('data', data => {
                server.log += data;
                const found = server.log.match(/listening on http:\/\/\S+:(\d+)/);
                if (found) server.port = Number(found[1]), resolve();
            });
            server.process.on('exit', () => reject(new Error(`the server ended: ${server.log}`)));
        });
        server.url = `http://127.0.0.1:${server.port}`;
        while (!(await fetch(`${server.url}/health`)).ok) await new Promise(resolve => setTimeout(resolve, 20));
        return server;
    }

    async stop(signal = 'SIGTERM') {
        if (this.process.exitCode !== null || this.process.signalCode) return;
        const ended = new Promise(resolve => this.process.on('exit', resolve));
        this.process.kill(signal);
        await ended;
    }

    async get(path) {
        return (await fetch(this.url + path)).json();
    }

    async metric(name) {
        const text = await (await fetch(`${this.url}/metrics`)).text();
        return Number(text.match(new RegExp(`^pith_${name} (\\S+)$`, 'm'))[1]);
    }
}

/** A page in a context of its own; `faults` is filled with what must not happen. */
export async function openPage(browser, server, options = {}, path = '/') {
    const context = await browser.newContext({locale: 'en-US', viewport: {width: 1280, height: 800}, ...options});
    const page = await context.newPage();
    const faults = [];
    context.on('request', request => {
        const url = new URL(request.url());
        if (url.origin !== server.url && !['data:', 'blob:'].includes(url.protocol)) faults.push(`request to ${request.url()}`);
    });
    page.on('pageerror', error => faults.push(`error ${error.message}`));
    page.on('dialog', dialog => faults.push(`dialog ${dialog.message()}`));
    page.on('console', message => {
        if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) faults.push(`console ${message.text()}`);
    });
    await page.addInitScript(() => {
        window.violations = [];
        addEventListener('securitypolicyviolation', event => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.goto(server.url + path);
    await page.locator('body[data-ready]').waitFor({timeout: 20000});
    const close = async () => {
        const violations = page.isClosed() ? [] : await page.evaluate(() => window.violations);
        await context.close();
        expect(!faults.length && !violations.length, 'faults', faults, violations);
    };
    return {page, context, faults, close};
}

/** What a server that says this would send: parts are deltas, or strings of content. */
export function eventStream(parts, more = {}) {
    const chunk = (delta, finish = null) => `data: ${JSON.stringify({id: 'x', object: 'chat.completion.chunk', model: 'made-up',
        choices: [{index: 0, delta, finish_reason: finish}]})}\n\n`;
    const timings = {cache_n: 3, prompt_n: 4, prompt_ms: 5, ttft_ms: 6, predicted_n: 7, predicted_ms: 8, predicted_per_second: 875, ...more.timings};
    return parts.map(part => chunk(typeof part === 'string' ? {content: part} : part)).join('') + chunk({}, more.finish || 'stop') +
        `data: ${JSON.stringify({choices: [], timings})}\n\ndata: [DONE]\n\n`;
}

/** The next replies are these streams; the requests' bodies are written down. */
export async function madeUp(page, ...streams) {
    const bodies = [];
    await page.route('**/v1/chat/completions', route => {
        bodies.push(route.request().postDataJSON());
        return route.fulfill({status: 200, contentType: 'text/event-stream', body: streams[Math.min(bodies.length, streams.length) - 1]});
    });
    return bodies;
}

export async function say(page, text) {
    await page.locator('#input').fill(text);
    await page.locator('#input').press('Enter');
}

/** Waits until no reply is being made. */
export async function replied(page) {
    await page.locator('#send').waitFor({state: 'visible', timeout: 60000});
    await page.locator('article[aria-busy]').waitFor({state: 'detached'});
}

/** A picture for people to look at, where PITH_PAGE_PICTURES names a folder. */
export async function picture(page, name) {
    if (process.env.PITH_PAGE_PICTURES) await page.screenshot({path: join(process.env.PITH_PAGE_PICTURES, `${name}.png`)});
}

export function writeText(name, text) {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
}
