// SPDX-License-Identifier: Apache-2.0
// The search of the pages runs in a worker, which browsers refuse to pages that
// are read from files. There, a hidden frame takes the worker's place. The name
// is the one by which the theme's worker finds out where it lies.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open()
      inside.document.write("<!doctype html><html><body></body></html>")
      inside.document.close()
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      const load = address => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = address
        script.onload = resolve
        script.onerror = reject
        inside.document.body.appendChild(script)
      })
      inside.importScripts = (...addresses) => addresses.reduce(
        (before, address) => before.then(() => load(address)), Promise.resolve())
      this.inside = inside
      this.ready = load(new URL(url, location.href).href)
    }
    postMessage(data) {
      this.ready.then(() =>
        this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
