// Figures of the replies: what the last one took, with small charts of the ones before, and the server's memory.
import uPlot from 'uplot';
import {$, formatBytes, formatSeconds, formatSpeed, make} from './elements.js';
import {request} from './server.js';
import {t} from './texts.js';

const KEPT = 60, POLL_MS = 2000;

const figures = [
    {name: 'first', value: reply => reply.ttft_ms / 1000, text: reply => t('seconds', formatSeconds(reply.ttft_ms))},
    {name: 'speed', value: reply => reply.predicted_per_second, text: reply => t('perSecond', formatSpeed(reply.predicted_per_second))},
    {name: 'cached', value: reply => reply.cache_n, text: reply => t('ofTokens', reply.cache_n, reply.cache_n + reply.prompt_n)},
];

function chart(values, label) {
    const place = make('div', {className: 'chart', aria: {role: 'img', label}});
    if (values.length) requestAnimationFrame(() => draw(place, values.length > 1 ? values : [...values, ...values]));
    return place;
}

function draw(place, values) {
    const style = getComputedStyle(document.documentElement);
    const colour = style.getPropertyValue('--accent').trim(), soft = style.getPropertyValue('--accent-soft').trim();
    const options = {
        width: place.clientWidth, height: place.clientHeight, legend: {show: false}, cursor: {show: false},
        axes: [{show: false}, {show: false}], padding: [4, 2, 4, 2],
        scales: {x: {time: false}, y: {range: (self, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1]}},
        series: [{}, {stroke: colour, fill: soft, width: 1.5, points: {show: false}}],
    };
    if (place.clientWidth > 0) new uPlot(options, [values.map((_, i) => i), values], place);
}

/** The numbers of /metrics by their names. */
async function readMetrics() {
    const text = await (await request('GET', '/metrics')).text();
    return Object.fromEntries([...text.matchAll(/^pith_(\w+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]));
}

export class Account {
    constructor() {
        this.replies = []; // timings, newest last
        this.memory = []; // bytes
        this.metrics = null;
        this.timer = 0;
    }

    get isOpen() {
        return !$('account').hidden;
    }

    toggle() {
        $('account').hidden = this.isOpen;
        $('open-account').setAttribute('aria-expanded', String(this.isOpen));
        clearInterval(this.timer);
        if (!this.isOpen) return;
        this.show();
        this.poll();
        this.timer = setInterval(() => document.hidden || this.poll(), POLL_MS);
    }

    /** The conversation's replies so far. */
    reset(replies) {
        this.replies = replies.slice(-KEPT);
        this.show();
    }

    add(timings) {
        this.replies = [...this.replies, timings].slice(-KEPT);
        this.show();
    }

    async poll() {
        try {
            this.metrics = await readMetrics();
            this.memory = [...this.memory, this.metrics.resident_bytes].slice(-KEPT);
        } catch {
            this.metrics = null; // a request tells what is wrong when somebody asks for something
        }
        this.show();
    }

    show() {
        if (!this.isOpen) return;
        const last = this.replies[this.replies.length - 1];
        const cards = figures.map(({name, value, text}) => this.card(t(name), last ? text(last) : '–',
            last ? t('lastReplies') : t('noReply'), this.replies.map(value)));
        const m = this.metrics;
        const waiting = m?.replies_queued ? ` · ${t('waiting', m.replies_queued)}` : '';
        cards.push(this.card(t('memory'), m ? formatBytes(m.resident_bytes) : '–', m ? t('ofModels', formatBytes(m.model_bytes)) + waiting : '', this.memory));
        $('account').replaceChildren(...cards);
    }

    card(name, text, note, values) {
        return make('div', {className: 'card'}, make('span', {className: 'small'}, name), make('strong', {}, text), chart(values, `${name}: ${text}`),
            make('span', {className: 'small'}, note));
    }
}

/** One line under a reply. */
export function describeTimings(timings) {
    const parts = [t('seconds', formatSeconds(timings.ttft_ms)), t('perSecond', formatSpeed(timings.predicted_per_second)), t('tokens', timings.predicted_n)];
    if (timings.cache_n > 0) parts.push(`${t('cached')}: ${t('ofTokens', timings.cache_n, timings.cache_n + timings.prompt_n)}`);
    return `${t('first')} ${parts.join(' · ')}`;
}
