// What the browser keeps for this page. Where it keeps nothing (blocked by the user, full), it is known until the page is closed.

class Memory {
    constructor(name) {
        this.own = new Map();
        try {
            this.kept = window[name];
            this.kept.getItem('');
        } catch {
            this.kept = null;
        }
    }

    get(key) {
        return this.own.get(key) ?? this.kept?.getItem(key) ?? null;
    }

    set(key, value) {
        this.own.set(key, value);
        try {
            this.kept?.setItem(key, value);
        } catch {
            // it is full
        }
    }
}

export const ofBrowser = new Memory('localStorage'), ofTab = new Memory('sessionStorage');
