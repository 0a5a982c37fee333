// Builds the page: fetches the locked packages once, bundles script and style, puts both into page.html, and writes that with its gzip
// and its Content-Security-Policy as a C file.
//     node apps/web/build.mjs FOLDER NPM          writes FOLDER/page_data.c and FOLDER/page.html
// Where packages cannot be fetched the C file says so, is dated back so that the next build tries again, and the exit status is 0:
// a page is no reason not to build pith. A fault in our own sources fails.
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {copyFileSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';

const LIMIT = 400 * 1024; // bytes of the page, plain
const here = dirname(fileURLToPath(import.meta.url));
const [given, npm] = process.argv.slice(2), folder = resolve(given);
const packages = ['package.json', 'package-lock.json', '.npmrc'];

/** The packages of package-lock.json below FOLDER; a sentence when they cannot be had. */
function fetchPackages() {
    const lock = readFileSync(join(here, 'package-lock.json'));
    const stamp = join(folder, 'packages.txt');
    const wanted = createHash('sha256').update(lock).digest('hex') + ' ' + process.version + '\n';
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return '';
    for (const name of packages) copyFileSync(join(here, name), join(folder, name));
    const options = ['ci', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1', '--fetch-timeout=30000'];
    const result = spawnSync(npm, options, {cwd: folder, encoding: 'utf8', timeout: 240000});
    writeFileSync(join(folder, 'npm.log'), `${result.stdout}${result.stderr}`);
    if (result.status !== 0) return 'npm could not fetch its packages (npm.log in the folder page of the build says more)';
    writeFileSync(stamp, wanted);
    return '';
}

function writeAbsence(reason) {
    const path = join(folder, 'page_data.c');
    writeFileSync(path, `#include "server/page_file.h"\nconst pith_page_file pith_page = {.absence = ${JSON.stringify(reason)}};\n`);
    utimesSync(path, new Date('2000-01-01'), new Date('2000-01-01'));
    console.error(`warning: pith serve is built without its page: ${reason}`);
}

const source = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The whole page, and what it may do. */
async function bundle() {
    const {build} = createRequire(join(folder, 'package.json'))('esbuild');
    const options = {bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none', logLevel: 'silent',
        nodePaths: [join(folder, 'node_modules')]};
    const [script, style] = await Promise.all([
        build({...options, entryPoints: [join(here, 'source/main.js')], format: 'iife', target: 'es2022'}),
        build({...options, entryPoints: [join(here, 'style.css')]}),
    ]);
    // what the user chose is known before anything is painted; all else runs after the first paint
    const early = `let s={};try{s=localStorage}catch{}document.documentElement.dataset.theme=s['pith.theme']||'auto';` +
        `document.documentElement.lang=s['pith.language']||navigator.language;`;
    const late = `requestAnimationFrame(()=>setTimeout(()=>{${script.outputFiles[0].text.trim()}}))`.replaceAll('</script', '<\\/script');
    const css = style.outputFiles[0].text.trim();
    const shell = readFileSync(join(here, 'page.html'), 'utf8');
    const html = shell.replace('<!-- style -->', () => `<script>${early}</script><style>${css}</style>`)
        .replace('<!-- script -->', () => `<script>${late}</script>`);
    const policy = ["default-src 'none'", `script-src ${source(early)} ${source(late)}`, `style-src ${source(css)}`, "connect-src 'self'", 'img-src data:',
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        'trusted-types dompurify'].join('; ');
    return {html: Buffer.from(html), policy};
}

const bytes = data => Array.from(data).join(',').replace(/(.{110}\d*,)/g, '$1\n');

function write({html, policy}) {
    const packed = gzipSync(html, {level: 9});
    if (html.length > LIMIT) throw new Error(`the page has ${html.length} bytes, at most ${LIMIT} are allowed`);
    writeFileSync(join(folder, 'page.html'), html);
    writeFileSync(join(folder, 'page_data.c'), `/* Made by apps/web/build.mjs. */
#include "server/page_file.h"
static const unsigned char plain[] = {
${bytes(html)}};
static const unsigned char packed[] = {
${bytes(packed)}};
const pith_page_file pith_page = {.plain = plain, .packed = packed, .plain_size = sizeof plain,
    .packed_size = sizeof packed, .policy = ${JSON.stringify(policy)}};
`);
    console.log(`page: ${html.length} bytes, ${packed.length} as gzip`);
}

mkdirSync(folder, {recursive: true});
const missing = fetchPackages();
if (missing) writeAbsence(missing);
else write(await bundle().catch(error => (console.error(error.message), process.exit(1))));
