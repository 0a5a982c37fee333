// Every text of the page in its languages. A text may be a function of numbers and names.

const number = value => value.toLocaleString('en');

const en = {
    skip: 'Skip to the message field', conversations: 'Conversations', newChat: 'New chat', search: 'Search', settings: 'Settings',
    title: 'Title of the chat', model: 'Model', adapter: 'Adapter', defaultAdapter: 'Adapter: as started', noAdapter: 'No adapter', account: 'Figures', exportOne: 'Export this chat',
    messages: 'Messages', documents: 'Documents', attach: 'Add text files', message: 'Message', send: 'Send', stop: 'Stop',
    thisChat: 'This chat', system: 'System prompt', temperature: 'Temperature', maxTokens: 'Longest reply, tokens', noLimit: 'no limit',
    tools: 'Tools (JSON, as OpenAI’s API has them)', toolsWrong: 'Tools must be a JSON list such as [{"type": "function", …}].',
    private: 'Private: no message of this chat goes to another engine', answeredBy: why => `Answered by another engine (${why})`,
    page: 'This page', theme: 'Colours', themeAuto: 'As the system', themeLight: 'Light', themeDark: 'Dark', language: 'Language',
    history: 'History', exportAll: 'Export all', import: 'Import', done: 'Done', cancel: 'Cancel', remove: 'Delete', save: 'Save and send',
    keep: 'Save', keyTitle: 'This server wants a key', keyText: 'It is kept until this tab is closed, and sent to this server alone.', key: 'Key',
    keyWrong: 'The server does not take this key.', keyUse: 'Use it',
    you: 'You', tool: 'Tool', systemRole: 'System', edit: 'Edit', again: 'Answer again', copy: 'Copy',
    earlier: 'Earlier version', later: 'Later version', versionOf: (i, n) => `Version ${i} of ${n}`,
    earlierMessages: n => `Show earlier messages (${number(n)})`,
    reasoning: 'Reasoning', thinking: 'Thinking …', call: name => `Calls ${name}`, result: name => `Result of ${name}`,
    sendResults: 'Send results',
    welcome: 'What is on your mind?', welcomeText: 'This page talks to pith on this machine, and to nobody else.',
    welcomeFar: host => `This page talks to pith on ${host}, and to nobody else.`,
    welcomeUpstream: 'pith may ask another engine; a chat that is marked private in the settings stays here.',
    starting: 'Waiting for the first token …', reading: (done, all) => `Reading ${number(done)} of ${number(all)} tokens`,
    writing: (n, speed) => `${number(n)} tokens · ${speed} tokens/s · Esc stops`, checking: 'Counting tokens …',
    began: 'The reply begins.', ended: 'The reply is complete.', stopped: 'Stopped.', cut: 'The reply was cut at its token limit.',
    first: 'To first token', speed: 'Tokens per second', cached: 'From cache', memory: 'Memory', lastReplies: 'last replies',
    ofTokens: (n, all) => `${number(n)} of ${number(all)} tokens`, seconds: s => `${s} s`, perSecond: n => `${n} tokens/s`,
    noReply: 'no reply yet', ofModels: bytes => `${bytes} of it models`, waiting: n => `${number(n)} waiting`,
    removeAsk: title => `Delete “${title}” with all its messages?`, removeOne: title => `Delete ${title}`, nothingFound: 'Nothing found.',
    noneYet: 'No chats yet.', moreChats: n => `${number(n)} older chats: search finds them.`, untitled: 'New chat',
    notKept: 'Chats are not kept on the server.', imported: (n, added) => `${number(n)} chats read, ${number(added)} new messages.`,
    importWrong: name => `${name} is no export of pith.`, notText: name => `${name} is no text file (UTF-8).`,
    tooLarge: (name, mb) => `${name} has ${mb} MB; at most 4 MB can be added.`,
    tooLong: (name, n, free, all) => `${name} is too long: ${number(n)} tokens, and ${number(free)} of ${number(all)} are free.`,
    tooLongAll: (n, all) => `The chat has ${number(n)} tokens; the model takes ${number(all)} and needs some for its answer. Begin a new chat or take a document away.`,
    tokens: n => `${number(n)} tokens`, removeDocument: name => `Take ${name} away`, noServer: 'The server does not answer. Is pith serve running?',
    notUnderstood: 'The reply came in a form that this page does not understand.', goneChat: 'This chat was deleted elsewhere: it goes on here, but is not kept.',
    tooMuch: 'Shown as plain text, because it is very long.', image: 'image', absent: 'not loaded', upstream: 'answered elsewhere', busy: 'Answering …',
};

const zh = {
    skip: '跳到输入框', conversations: '对话', newChat: '新对话', search: '搜索', settings: '设置',
    title: '对话标题', model: '模型', adapter: '适配器', defaultAdapter: '适配器：服务器默认', noAdapter: '不用适配器', account: '数据', exportOne: '导出此对话',
    messages: '消息', documents: '文档', attach: '添加文本文件', message: '输入消息', send: '发送', stop: '停止',
    thisChat: '此对话', system: '系统提示', temperature: '温度', maxTokens: '回复最长（词元）', noLimit: '不限',
    tools: '工具（JSON，OpenAI 格式）', toolsWrong: '工具必须是 JSON 列表，例如 [{"type": "function", …}]。',
    private: '私密：此对话的消息不会发送给其他引擎', answeredBy: why => `由其他引擎回答（${why}）`,
    page: '此页面', theme: '颜色', themeAuto: '跟随系统', themeLight: '浅色', themeDark: '深色', language: '语言',
    history: '历史', exportAll: '全部导出', import: '导入', done: '完成', cancel: '取消', remove: '删除', save: '保存并发送',
    keep: '保存', keyTitle: '此服务器需要密钥', keyText: '密钥只保留到关闭此标签页，并且只发送给此服务器。', key: '密钥',
    keyWrong: '服务器不接受此密钥。', keyUse: '使用',
    you: '你', tool: '工具', systemRole: '系统', edit: '编辑', again: '重新回答', copy: '复制',
    earlier: '上一版本', later: '下一版本', versionOf: (i, n) => `第 ${i} 版，共 ${n} 版`,
    earlierMessages: n => `显示更早的消息（${number(n)} 条）`,
    reasoning: '思考过程', thinking: '思考中…', call: name => `调用 ${name}`, result: name => `${name} 的结果`,
    sendResults: '发送结果',
    welcome: '想聊些什么？', welcomeText: '此页面只与这台机器上的 pith 通信。',
    welcomeFar: host => `此页面只与 ${host} 上的 pith 通信。`,
    welcomeUpstream: 'pith 可能会询问其他引擎；在设置中标为私密的对话留在这里。',
    starting: '等待第一个词元…', reading: (done, all) => `正在读取 ${number(done)} / ${number(all)} 词元`,
    writing: (n, speed) => `${number(n)} 词元 · 每秒 ${speed} 词元 · 按 Esc 停止`, checking: '正在计算词元…',
    began: '开始回答。', ended: '回答完毕。', stopped: '已停止。', cut: '回复达到词元上限，已截断。',
    first: '首词元时间', speed: '每秒词元', cached: '来自缓存', memory: '内存', lastReplies: '最近的回复',
    ofTokens: (n, all) => `${number(n)} / ${number(all)} 词元`, seconds: s => `${s} 秒`, perSecond: n => `每秒 ${n} 词元`,
    noReply: '还没有回复', ofModels: bytes => `其中模型 ${bytes}`, waiting: n => `${number(n)} 个在等待`,
    removeAsk: title => `删除“${title}”及其全部消息？`, removeOne: title => `删除 ${title}`, nothingFound: '没有找到。',
    noneYet: '还没有对话。', moreChats: n => `还有 ${number(n)} 个较早的对话，可以搜索。`, untitled: '新对话',
    notKept: '对话不会保存在服务器上。', imported: (n, added) => `读入 ${number(n)} 个对话，新增 ${number(added)} 条消息。`,
    importWrong: name => `${name} 不是 pith 的导出文件。`, notText: name => `${name} 不是文本文件（UTF-8）。`,
    tooLarge: (name, mb) => `${name} 有 ${mb} MB，最多可以添加 4 MB。`,
    tooLong: (name, n, free, all) => `${name} 太长：${number(n)} 词元，而 ${number(all)} 中只剩 ${number(free)}。`,
    tooLongAll: (n, all) => `对话有 ${number(n)} 词元，模型最多 ${number(all)}，还要留一些给回答。请新建对话或移除文档。`,
    tokens: n => `${number(n)} 词元`, removeDocument: name => `移除 ${name}`, noServer: '服务器没有响应。pith serve 在运行吗？',
    notUnderstood: '回复的格式无法识别。', goneChat: '此对话已在别处删除：可以继续，但不再保存。',
    tooMuch: '内容很长，以纯文本显示。', image: '图片', absent: '未加载', upstream: '由上游回答', busy: '正在回答…',
};

const languages = {en, zh};
let chosen = 'en';

/** The text of this name in the language chosen, with what it needs. */
export function t(name, ...values) {
    const text = languages[chosen][name];
    return typeof text === 'function' ? text(...values) : text;
}

/** How a reply ended, where it did not end by itself. */
export const endOf = finish => (finish === 'stopped' ? t('stopped') : finish === 'length' ? t('cut') : '');

export const language = () => chosen;

export function preferredLanguage() {
    return (navigator.language || 'en').toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** Puts the language's texts into the whole page: data-t, data-label (aria-label and tooltip), data-placeholder. */
export function setLanguage(name) {
    chosen = languages[name] ? name : 'en';
    document.documentElement.lang = chosen === 'zh' ? 'zh-CN' : 'en';
    for (const element of document.querySelectorAll('[data-t]')) element.textContent = t(element.dataset.t);
    for (const element of document.querySelectorAll('[data-placeholder]')) element.placeholder = t(element.dataset.placeholder);
    for (const element of document.querySelectorAll('[data-label]')) {
        element.setAttribute('aria-label', t(element.dataset.label));
        if (element.tagName === 'BUTTON') element.title = t(element.dataset.label);
    }
}

/** For tests of the page's sources: both languages have the same names. */
export const textNames = Object.fromEntries(Object.entries(languages).map(([name, texts]) => [name, Object.keys(texts).sort()]));
