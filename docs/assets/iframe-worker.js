// Search runs in a worker, which browsers refuse to a page that is a file: there it runs in a hidden frame instead.
// The name is the one by which the theme knows that no such script has to be fetched.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      this.waiting = [];
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent('message', { data })));
      const script = inside.document.createElement('script');
      script.src = url;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      };
      inside.document.documentElement.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.frame.contentWindow.dispatchEvent(new MessageEvent('message', { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
