// What comes from outside, an upstream's reply or a file that is imported, in the shapes that the page knows: anything else is left out, so
// that nothing later has to ask.

const MOST_CALLS = 128;

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
const objects = value => (Array.isArray(value) ? value.filter(isObject) : []);
const text = (value, otherwise = '') => (typeof value === 'string' ? value : otherwise);
const numberOr = (value, otherwise) => (typeof value === 'number' && Number.isFinite(value) ? value : otherwise);

/** A reply's figures; null unless all are there: other engines tell some. */
export function readTimings(timings) {
    const names = ['ttft_ms', 'predicted_per_second', 'predicted_n', 'cache_n', 'prompt_n'];
    if (!isObject(timings) || !names.every(name => Number.isFinite(timings[name]) && timings[name] >= 0)) return null;
    return Object.fromEntries(names.map(name => [name, timings[name]]));
}

/** What a message holds beside its text. */
export function readMore(more) {
    const out = {};
    if (!isObject(more)) return out;
    for (const name of ['model', 'reasoning', 'error', 'finish', 'call', 'name', 'upstream'])
        if (typeof more[name] === 'string') out[name] = more[name];
    const documents = objects(more.documents), calls = objects(more.calls), timings = readTimings(more.timings);
    if (documents.length) out.documents = documents.map(one => ({name: text(one.name), text: text(one.text), tokens: numberOr(one.tokens, 0)}));
    if (calls.length) out.calls = calls.map(one => ({id: text(one.id), name: text(one.name), arguments: text(one.arguments)}));
    if (timings) out.timings = timings;
    return out;
}

export function isListOfTools(tools) {
    try {
        return !tools.trim() || Array.isArray(JSON.parse(tools));
    } catch {
        return false;
    }
}

/** The settings of a conversation, each of its kind or as in `defaults`. */
export function readSettings(settings, defaults) {
    const given = isObject(settings) ? settings : {}, tools = text(given.tools);
    return {
        system: text(given.system, defaults.system),
        temperature: given.temperature === null ? null : numberOr(given.temperature, defaults.temperature),
        maxTokens: numberOr(given.maxTokens, defaults.maxTokens),
        tools: isListOfTools(tools) ? tools : defaults.tools,
        model: text(given.model, defaults.model),
        adapter: text(given.adapter, defaults.adapter),
        isPrivate: given.isPrivate === true,
    };
}

/** A choice's part of a streamed event: {content, reasoning, calls: [{index, id, name, arguments}], finish}. */
export function readDelta(event) {
    const choice = objects(event.choices).find(one => !one.index) || {};
    const delta = isObject(choice.delta) ? choice.delta : {};
    const calls = objects(delta.tool_calls).map((call, at) => {
        const part = isObject(call.function) ? call.function : {};
        return {index: call.index ?? at, id: text(call.id), name: text(part.name), arguments: text(part.arguments)};
    });
    return {content: text(delta.content), reasoning: text(delta.reasoning_content) || text(delta.reasoning), finish: text(choice.finish_reason),
        calls: calls.filter(({index}) => Number.isInteger(index) && index >= 0 && index < MOST_CALLS)};
}
