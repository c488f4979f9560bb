// Applies the remembered theme before anything is painted; docs.js has the switch.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
