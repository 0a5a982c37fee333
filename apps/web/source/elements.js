// Making elements without markup: everything that comes from outside becomes text.

export const $ = id => document.getElementById(id);

/** An element with properties and children; texts become text nodes. `on` holds listeners, `data` and `aria` attributes. */
export function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    const {on = {}, aria = {}, ...rest} = properties;
    for (const [name, value] of Object.entries(rest)) element[name] = value;
    for (const [name, value] of Object.entries(aria)) element.setAttribute(name === 'role' ? name : `aria-${name}`, value);
    for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
    element.append(...children.filter(child => child !== null && child !== undefined));
    return element;
}

export function icon(name) {
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg'), use = document.createElementNS(space, 'use');
    svg.setAttribute('aria-hidden', 'true');
    use.setAttribute('href', `#i-${name}`);
    svg.append(use);
    return svg;
}

/** A button that shows an icon and is called by its label. */
export function iconButton(name, label, press) {
    return make('button', {type: 'button', className: 'quiet icon', title: label, aria: {label}, on: {click: press}}, icon(name));
}

/** Into the clipboard; a page that came without TLS from another machine has no navigator.clipboard. */
export async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = make('textarea', {value: text, className: 'unseen'});
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
    before?.focus();
}

/** A file for the user to keep. */
export function offerFile(name, text) {
    const url = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
    const link = make('a', {href: url, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export function formatBytes(bytes) {
    const units = ['B', 'KB', 'MB', 'GB', 'TB'];
    let at = 0;
    for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
    return `${bytes >= 100 || at === 0 ? Math.round(bytes) : bytes.toPrecision(2)} ${units[at]}`;
}

export const formatSeconds = ms => (ms < 9950 ? (ms / 1000).toFixed(ms < 995 ? 2 : 1) : String(Math.round(ms / 1000)));
export const formatSpeed = value => (value < 10 ? value.toFixed(1) : String(Math.round(value)));
