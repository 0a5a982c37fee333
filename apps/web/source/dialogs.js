// Dialogs: a question, the key, the settings.
import {$} from './elements.js';
import {facts} from './server.js';
import {isListOfTools} from './shapes.js';
import {t} from './texts.js';

/** Whether the user says yes. */
export function ask(text, yes) {
    $('ask-text').textContent = text;
    $('ask-yes').textContent = yes;
    return new Promise(resolve => {
        const dialog = $('ask');
        dialog.returnValue = 'no';
        dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), {once: true});
        dialog.showModal();
    });
}

/** The server's key: nothing goes on without it. */
export function askForKey(wasWrong) {
    const dialog = $('key');
    $('key-wrong').hidden = !wasWrong;
    $('key-input').value = '';
    return new Promise(resolve => {
        dialog.addEventListener('cancel', event => event.preventDefault());
        dialog.addEventListener('close', () => resolve($('key-input').value.trim()), {once: true});
        dialog.showModal();
    });
}

/** Shows the settings of a conversation; done(changed) when they are closed. A wrong list of tools is not left. */
export function openSettings(settings, done) {
    const dialog = $('settings');
    $('system').value = settings.system;
    $('temperature').value = settings.temperature ?? '';
    $('max-tokens').value = settings.maxTokens ?? '';
    $('tools').value = settings.tools;
    $('private').checked = settings.isPrivate;
    $('private-line').hidden = !facts.upstream;
    $('tools-wrong').hidden = true;
    $('settings-done').onclick = event => {
        const right = isListOfTools($('tools').value);
        $('tools-wrong').hidden = right;
        $('tools-wrong').textContent = t('toolsWrong');
        if (!right) event.preventDefault(), $('tools').focus();
    };
    const close = () => done({
        ...settings,
        system: $('system').value,
        temperature: $('temperature').value === '' ? null : Number($('temperature').value),
        maxTokens: $('max-tokens').value === '' ? null : Number($('max-tokens').value),
        isPrivate: $('private').checked,
        tools: isListOfTools($('tools').value) ? $('tools').value : settings.tools,
    });
    dialog.addEventListener('close', close, {once: true});
    dialog.showModal();
}
